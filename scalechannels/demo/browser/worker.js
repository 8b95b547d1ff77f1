// What the server answers (scalechannels/demo/answers.py and looks.py), by the same paths and in the same form.

import { digitFromStrokes } from "./drawing.js";
import { largeScale } from "./large_scale.js";
import * as ort from "./onnxruntime.js";
import { digitFromPicture } from "./picture.js";

ort.env.wasm.numThreads = 1;  // more of them need headers that few hosts of pages send

const ANSWERS = {
  "api/settings": () => settings,
  "api/example": (_, query) => example(Number(query.get("number")), query.get("digit")),
  "api/drawing": ({ strokes }) => ({ digit: inBase64(digitFromStrokes(strokes)) }),
  "api/picture": async (file) => ({ digit: inBase64(await digitFromPicture(file)) }),
  "api/look": ({ digit, size, ...off }) => look(bytes(digit), size, off),
  "api/sizes": ({ digit, ...off }) => atAllSizes(bytes(digit), off),
};

let settings, examples, network, plain;
const loaded = load();

addEventListener("message", async ({ data: { number, path, given } }) => {
  try {
    await loaded;
    const [name, query] = path.split("?");
    postMessage({ number, content: await ANSWERS[name](given, new URLSearchParams(query)) });
  } catch (error) {
    postMessage({ number, error: error.message });
  }
});

async function load() {
  const fetched = async (name) => {
    const reply = await fetch(new URL(name, import.meta.url));
    if (!reply.ok) throw new Error(`The file ${name} of this page is missing.`);
    return reply;
  };
  const json = async (name) => (await fetched(name)).json();
  const session = async (name) => ort.InferenceSession.create(await (await fetched(name)).arrayBuffer());
  [settings, examples] = await Promise.all([json("settings.json"), json("examples.json")]);
  network = await session("network.onnx");
  plain = await session("plain.onnx");
}

/** A built-in digit as pen strokes: any, or one of a class. */
function example(number, digit) {
  const ofAllClasses = examples[number % examples.length];
  return ofAllClasses[digit ?? Math.floor(number / examples.length) % ofAllClasses.length];
}

/** What both networks see and say of a digit (784 bytes) at a size, so many rows and columns off the centre. */
async function look(digit, size, { down = 0, right = 0 }) {
  const picture = placed(digit, size, down, right);
  const [said, beside] = await both(picture);
  const { channel_logits: channels, contributions, windows } = said;
  const [, count, classes] = channels.dims, selected = largest(contributions.data);
  return {
    size,
    off: [down, right],
    picture: inBase64(asShown(picture)),
    windows: inBase64(asShown(windows.data)),
    place: [(settings.side - 1) / 2, (settings.side - 1) / 2],
    logits: Array.from({ length: count }, (_, s) => rounded(channels.data.subarray(s * classes, (s + 1) * classes))),
    contributions: rounded(contributions.data),
    selected,
    at_edge: selected === 0 || selected === count - 1,
    verdict: verdict(said.logits.data),
    plain: verdict(beside.logits.data),
  };
}

/** The verdicts of both networks at the sizes of the strip. A look that is asked for meanwhile comes in between. */
async function atAllSizes(digit, { down = 0, right = 0 }) {
  const verdicts = { sizes: settings.sizes, scale_channels: [], plain: [] };
  for (const size of settings.sizes) {
    await new Promise((resume) => setTimeout(resume));
    const [said, beside] = await both(placed(digit, size, down, right));
    verdicts.scale_channels.push(largest(said.logits.data));
    verdicts.plain.push(largest(beside.logits.data));
  }
  return verdicts;
}

/** The picture of a digit, moved over the empty ground. */
function placed(digit, size, down, right) {
  const side = settings.side, centred = largeScale(digit, size, side);
  if (!down && !right) return centred;
  const within = (place) => place >= 0 && place < side;
  return centred.map((_, index) => {
    const row = Math.floor(index / side) - down, column = (index % side) - right;
    return within(row) && within(column) ? centred[row * side + column] : settings.values[0];
  });
}

async function both(picture) {
  const images = new ort.Tensor("float32", picture, [1, 1, settings.side, settings.side]);
  return [await network.run({ images }), await plain.run({ images })];
}

function verdict(logits) {
  if (!logits.every(Number.isFinite)) throw new Error("The network's answer is not finite.");
  const digit = largest(logits), shares = Array.from(logits, (logit) => Math.exp(logit - logits[digit]));
  const total = shares.reduce((sum, share) => sum + share);
  return { digit, probabilities: rounded(shares.map((share) => share / total)) };
}

const largest = (values) => values.indexOf(Math.max(...values));
const rounded = (values) => Array.from(values, (value) => Math.round(value * 1e4) / 1e4);
const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const inBase64 = (grey) => btoa(Array.from(grey, (value) => String.fromCharCode(value)).join(""));

/** Values from black to white as bytes. */
function asShown(values) {
  const [black, white] = settings.values;
  return Uint8ClampedArray.from(values, (value) => ((value - black) / (white - black)) * 255);
}
