// The page of the demo. It keeps the digit and the size; what is seen and said is asked of a server, or of the browser.

import { answer } from "./answers.js";

const $ = (id) => document.getElementById(id);
const MAX_POINTS = 3900, MAX_STROKES = 64;
// `known` is what the digit is, as its example or the user says it, never what a network says.
// `off` is by how many rows and columns of the networks' image the digit is off its centre.
const state = { strokes: [], digit: null, known: null, size: 1, off: [0, 0], picture: false };
let settings;

function say(text) {
  $("message").textContent = text;
  $("message").hidden = !text;
}

let asked = 0;

/** Runs a task and says what went wrong in it. The page tells how many are not answered yet. */
async function attempt(task) {
  document.body.dataset.asked = ++asked;
  try {
    await task();
    say("");
  } catch (error) {
    say(error.message);
  }
  document.body.dataset.asked = --asked;
}

/** A task that runs once at a time. Asked for while it runs, it runs once more: the last state always gets shown. */
function latest(task) {
  let running = false, again = false;
  return async () => {
    again = true;
    if (running) return;
    running = true;
    while (again) {
      again = false;
      await attempt(task);
    }
    running = false;
  };
}

const refreshDrawing = latest(async () => {
  if (!state.strokes.length) return;
  const made = await answer("api/drawing", { strokes: state.strokes });
  take(made.digit);
});

const refreshLook = latest(async () => {
  if (!state.digit) return;
  const started = performance.now();
  const seen = await answer("api/look", { digit: state.digit, size: state.size, ...whereabouts() });
  if (!state.digit) return;
  show(seen);
  $("latency").textContent = `Answered in ${Math.round(performance.now() - started)} ms on this machine.`;
});

const refreshSizes = latest(async () => {
  if (!state.digit) return;
  const said = await answer("api/sizes", { digit: state.digit, ...whereabouts() });
  if (!state.digit) return;
  state.said = said;
  showTruth();
});

const whereabouts = () => (settings.furthest ? { down: state.off[0], right: state.off[1] } : {});

function take(digit) {
  state.digit = digit;
  refreshLook();
  refreshSizes();
}

// Drawing

const pad = $("pad"), pen = pad.getContext("2d");
const cursor = { x: 0.5, y: 0.5, down: false, shown: false };

function paintPad() {
  const side = pad.width;
  pen.clearRect(0, 0, side, side);
  if (state.picture && state.digit) {
    const small = document.createElement("canvas");
    small.width = small.height = 28;
    paint(small, bytes(state.digit));
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, 0, 0, side, side);
  }
  pen.lineCap = pen.lineJoin = "round";
  pen.strokeStyle = pen.fillStyle = "#fff";
  pen.lineWidth = side * 0.075;
  for (const stroke of state.strokes) {
    pen.beginPath();
    pen.moveTo(stroke[0][0] * side, stroke[0][1] * side);
    for (const [x, y] of stroke) pen.lineTo(x * side, y * side + (stroke.length === 1 ? 0.01 : 0));
    pen.stroke();
  }
  if (!state.strokes.length && !state.picture) {
    pen.fillStyle = "#8b939e";
    pen.font = `${side * 0.06}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.fillText("draw here", side / 2, side / 2);
  }
  if (cursor.shown) {
    pen.lineWidth = 3;
    pen.strokeStyle = cursor.down ? "#6aa9f7" : "#8b939e";
    pen.beginPath();
    pen.arc(cursor.x * side, cursor.y * side, side * 0.04, 0, 7);
    pen.stroke();
  }
}

function startStroke(x, y) {
  if (state.picture || state.fresh) clearDigit();
  state.known = null;
  if (state.strokes.length < MAX_STROKES) state.strokes.push([[x, y]]);
  drawn();
}

function goOn(x, y) {
  const stroke = state.strokes.at(-1), [oldX, oldY] = stroke.at(-1);
  const points = state.strokes.reduce((sum, one) => sum + one.length, 0);
  if (points >= MAX_POINTS || Math.hypot(x - oldX, y - oldY) < 0.004) return;
  stroke.push([x, y]);
  drawn();
}

function drawn() {
  paintPad();
  refreshDrawing();
}

function place(event) {
  const box = pad.getBoundingClientRect();
  const inside = (value) => Math.min(1, Math.max(0, Math.round(value * 1e4) / 1e4));
  return [inside((event.clientX - box.left) / box.width), inside((event.clientY - box.top) / box.height)];
}

pad.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  pad.setPointerCapture(event.pointerId);
  cursor.shown = cursor.down = false;
  startStroke(...place(event));
  pad.dataset.drawing = event.pointerId;
});
pad.addEventListener("pointermove", (event) => {
  if (pad.dataset.drawing !== String(event.pointerId)) return;
  for (const each of event.getCoalescedEvents?.() ?? [event]) goOn(...place(each));
});
for (const end of ["pointerup", "pointercancel"]) pad.addEventListener(end, () => delete pad.dataset.drawing);

pad.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!step && event.key !== " ") return;
  event.preventDefault();
  cursor.shown = true;
  if (step) {
    cursor.x = Math.min(0.95, Math.max(0.05, cursor.x + step[0] * 0.03));
    cursor.y = Math.min(0.95, Math.max(0.05, cursor.y + step[1] * 0.03));
    if (cursor.down) goOn(cursor.x, cursor.y);
  } else {
    cursor.down = !cursor.down;
    if (cursor.down) startStroke(cursor.x, cursor.y);
  }
  paintPad();
});
pad.addEventListener("blur", () => {
  cursor.shown = cursor.down = false;
  paintPad();
});

function clearDigit() {
  Object.assign(state, { strokes: [], digit: null, known: null, said: null, off: [0, 0], picture: false, fresh: false });
  paintPad();
  showNothing();
}

async function example(label) {
  await attempt(async () => {
    const number = Math.floor(Math.random() * 2 ** 20);
    const made = await answer(`api/example?number=${number}` + (label === undefined ? "" : `&digit=${label}`));
    // The next stroke begins a new drawing: nobody adds to an example.
    Object.assign(state, { strokes: made.strokes, known: made.label, picture: false, fresh: true });
    drawn();
  });
}

async function openPicture(file) {
  await attempt(async () => {
    const made = await answer("api/picture", file);
    Object.assign(state, { strokes: [], known: null, picture: true, fresh: true });
    take(made.digit);
    paintPad();
  });
}

// Showing

const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

/** Grey bytes into a canvas that has as many pixels. */
function paint(canvas, grey) {
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < grey.length; i++) image.data.set([grey[i], grey[i], grey[i], 255], 4 * i);
  context.putImageData(image, 0, 0);
}

function show(seen) {
  paint($("picture"), bytes(seen.picture));
  const side = settings.window, windows = bytes(seen.windows);
  const sigma = settings.scales[seen.selected];
  [...$("windows").children].forEach((cell, index) => {
    paint(cell.querySelector("canvas"), windows.subarray(index * side * side, (index + 1) * side * side));
    cell.style.setProperty("--share", seen.contributions[index]);
    cell.classList.toggle("selected", index === seen.selected);
  });
  const square = $("square"), part = (sigma * side) / settings.side;
  square.hidden = part >= 1;
  square.style.width = square.style.height = `${Math.min(1, part) * 100}%`;
  const [row, column] = seen.place ?? [(settings.side - 1) / 2, (settings.side - 1) / 2];
  square.style.top = `${((row + 0.5) / settings.side) * 100}%`;
  square.style.left = `${((column + 0.5) / settings.side) * 100}%`;
  const off = Boolean(seen.off?.some(Boolean));
  $("back").hidden = !off;
  const decides = `The deciding channel, σ = ${name(sigma)},`;
  $("looked").textContent = (part < 1 ? `${decides} looks at the square.` : `${decides} looks at all of them.`)
    + (seen.at_edge ? " It is the last of its grid: the digit may be beyond its range." : "")
    + (off && !settings.everywhere ? " This network looks at the centre, wherever the digit is." : "");
  const all = seen.logits.flat(), low = Math.min(...all), high = Math.max(...all);
  [...$("logits").tBodies[0].rows].forEach((row, digit) => {
    row.cells[0].classList.toggle("verdict-row", digit === seen.verdict.digit);
    seen.logits.forEach((logits, channel) => {
      const cell = row.cells[channel + 1], heat = ((logits[digit] - low) / (high - low || 1)) ** 3;
      cell.textContent = logits[digit].toFixed(Math.abs(logits[digit]) < 9.95 ? 1 : 0);
      cell.style.setProperty("--heat", heat.toFixed(3));
      cell.classList.toggle("hot", heat > 0.5);
    });
  });
  state.seen = seen;
  showVerdicts();
}

function showVerdicts() {
  const seen = state.seen, truth = state.known;
  if (!seen) return;
  for (const [id, said] of [["verdict-channels", seen.verdict], ["verdict-plain", seen.plain]]) {
    const card = $(id), strong = card.querySelector("strong");
    if (strong.textContent !== String(said.digit)) strong.textContent = said.digit;
    const wrong = truth !== null && said.digit !== truth;
    card.classList.toggle("wrong", wrong);
    card.querySelector(".sure").textContent =
      `${percent(said.probabilities[said.digit])} sure` + (truth === null ? "" : wrong ? `, but it is a ${truth}` : ", and right");
    [...card.querySelectorAll(".bars i")].forEach((bar, digit) =>
      bar.style.setProperty("--share", said.probabilities[digit]));
  }
  $("shown").dataset.size = seen.size;
}

function showTruth() {
  const truth = state.known;
  $("truth").value = truth ?? "";
  $("tell").hidden = truth !== null || !state.said;
  for (const [id, who, said] of [
    ["strip-channels", "Scale channels", state.said?.scale_channels],
    ["strip-plain", "Plain CNN", state.said?.plain]]) {
    [...$(id).children].forEach((cell, index) => {
      cell.textContent = said ? said[index] : "";
      cell.classList.toggle("wrong", Boolean(said) && truth !== null && said[index] !== truth);
    });
    $(id).setAttribute("aria-label", said
      ? `${who} say, from size one half to eight: ${said.join(" ")}` : `${who}: nothing is drawn yet`);
  }
  showVerdicts();
}

function showNothing() {
  state.seen = null;
  for (const canvas of document.querySelectorAll("#picture, .window canvas")) {
    canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
  }
  for (const cell of $("windows").children) {
    cell.classList.remove("selected");
    cell.style.setProperty("--share", 0);
  }
  for (const cell of document.querySelectorAll("#logits td")) {
    cell.textContent = "";
    cell.style.setProperty("--heat", 0);
  }
  for (const id of ["verdict-channels", "verdict-plain"]) {
    $(id).classList.remove("wrong");
    $(id).querySelector("strong").textContent = "–";
    $(id).querySelector(".sure").textContent = "";
    for (const bar of $(id).querySelectorAll(".bars i")) bar.style.setProperty("--share", 0);
  }
  $("square").hidden = true;
  $("looked").textContent = $("latency").textContent = "";
  delete $("shown").dataset.size;
  showTruth();
}

const percent = (share) => (share > 0.9995 ? "100 %" : `${(100 * share).toFixed(share > 0.995 || share < 0.1 ? 1 : 0)} %`);

function name(size) {
  const known = new Map([[0.25, "¼"], [0.5, "½"]]).get(size);
  return known ?? String(Number(size.toPrecision(size < 10 ? 3 : 2)));
}

// Zooming

function setSize(size) {
  state.size = Math.min(settings.largest, Math.max(settings.smallest, size));
  const text = `×${name(state.size)}`;
  $("shown").textContent = text;
  $("size").value = Math.log2(state.size);
  $("size").setAttribute("aria-valuetext", text);
  const column = Math.round(4 * Math.log2(state.size / settings.smallest));
  for (const id of ["strip-channels", "strip-plain"]) {
    [...$(id).children].forEach((cell, index) => cell.classList.toggle("here", index === column));
  }
  refreshLook();
}

// Dragging

const picture = $("picture");

function moveTo(down, right) {
  const within = (value) => Math.min(settings.furthest, Math.max(-settings.furthest, Math.round(value)));
  state.off = [within(down), within(right)];
  refreshLook();
}

picture.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || !settings.furthest || !state.digit) return;
  picture.setPointerCapture(event.pointerId);
  const { clientX: x, clientY: y } = event, [down, right] = state.off;
  const pixel = picture.getBoundingClientRect().width / settings.side;
  const drag = (to) => moveTo(down + (to.clientY - y) / pixel, right + (to.clientX - x) / pixel);
  picture.addEventListener("pointermove", drag);
  for (const end of ["pointerup", "pointercancel"]) {
    picture.addEventListener(end, () => {
      picture.removeEventListener("pointermove", drag);
      refreshSizes();
    }, { once: true });
  }
});
picture.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [0, -4], ArrowRight: [0, 4], ArrowUp: [-4, 0], ArrowDown: [4, 0] }[event.key];
  if (!step || !settings.furthest) return;
  event.preventDefault();
  moveTo(state.off[0] + step[0], state.off[1] + step[1]);
  refreshSizes();
});
$("back").addEventListener("click", () => {
  moveTo(0, 0);
  refreshSizes();
  picture.focus();
});

// Scenes

let sceneAsked = false;
const refreshScene = latest(() => scene(answer("api/scene", {
  seed: Math.floor(Math.random() * 2 ** 30), background: $("background").value })));

async function scene(asked) {
  sceneAsked = true;
  $("view").classList.add("busy");
  $("summary").textContent = "Looking at every point at every scale …";
  const started = performance.now();
  try {
    const made = await asked;
    showScene(made, performance.now() - started);
  } catch (error) {
    $("summary").textContent = "";
    throw error;
  } finally {
    $("view").classList.remove("busy");
  }
}

function overlap(a, b) {
  const width = Math.min(a[2], b[2]) - Math.max(a[0], b[0]), height = Math.min(a[3], b[3]) - Math.max(a[1], b[1]);
  if (width <= 0 || height <= 0) return 0;
  const area = (box) => (box[2] - box[0]) * (box[3] - box[1]);
  return (width * height) / (area(a) + area(b) - width * height);
}

const long = ([x0, y0, x1, y1]) => Math.max(x1 - x0, y1 - y0);

function showScene(made, time) {
  const left = new Set(made.truth ?? []), colours = new Map();
  if (!settings.detector.digits) for (const one of settings.detector.classes) colours.set(one.name, one.colour);
  const marks = made.found.map((one) => {
    const match = [...left].find((true_) => true_.class === one.class && overlap(true_.box, one.box) >= 0.5);
    left.delete(match);
    const known = colours.has(one.class) ? "own" : "right";
    return { ...one, kind: made.truth && !match ? "wrong" : known };
  });
  const right = marks.filter((one) => one.kind === "right").length;
  for (const missed of left) marks.push({ ...missed, kind: "missed" });
  const picture = $("scene-picture"), svg = $("boxes");
  picture.src = made.picture;
  const kind = settings.detector.digits ? "A scene with digits" : "Your picture";
  picture.alt = `${kind}; found: ${made.found.map((one) => one.class).join(", ") || "none"}`;
  svg.setAttribute("viewBox", `-0.5 -0.5 ${made.width} ${made.height}`);
  const make = (kind, parent, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    parent.append(element);
    return element;
  };
  svg.replaceChildren();
  for (const one of marks) {
    const [x0, y0, x1, y1] = one.box, group = make("g", svg, { class: one.kind });
    if (one.kind === "own") group.style.setProperty("--class", colours.get(one.class));
    const height = made.width * Math.max(1 / 44, 12 / $("view").clientWidth);  // to be read on a phone too
    make("rect", group, { x: x0, y: y0, width: x1 - x0, height: y1 - y0, rx: 2 });
    const text = make("text", group, { x: x0 + 1, y: y0 - 3 < height ? y1 + height : y0 - 3, "font-size": height });
    text.textContent = one.class;
    if (one.probability) make("title", group, {}).textContent = `${one.class}: ${percent(one.probability)}, `
      + (settings.detector.digits ? `size ${one.size}` : `${Math.round(long(one.box) * made.pixel)} pixels`);
  }
  const found = made.truth
    ? `Found ${right} of ${made.truth.length} digits` + (marks.some((one) => one.kind === "wrong")
      ? `, and ${made.found.length - right} that ${made.found.length - right === 1 ? "is" : "are"} wrong` : "")
    : `Found ${made.found.length} ${settings.detector.digits ? "digit" : "object"}${made.found.length === 1 ? "" : "s"}`;
  const sizes = made.found.map((one) => settings.detector.digits ? one.size : long(one.box) * made.pixel);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const range = !sizes.length ? "" : settings.detector.digits ? `, of sizes ${name(least)} to ${name(most)}`
    : `, ${Math.round(least)} to ${Math.round(most)} pixels long`;
  const shrunk = made.shrunk > 1 ? ` The picture was searched ${name(made.shrunk)} times smaller, so that the answer `
    + "comes in seconds; scalechannels detect searches all of it." : "";
  $("summary").textContent = `${found}${range}, in ${(time / 1000).toFixed(1)} s.${shrunk}`;
  $("view").dataset.found = made.found.length;
}

// Tabs, pictures that are dropped, keys

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab) {
  for (const each of tabs) {
    const chosen = each === tab;
    each.setAttribute("aria-selected", chosen);
    each.tabIndex = chosen ? 0 : -1;
    $(each.getAttribute("aria-controls")).hidden = !chosen;
  }
  say("");
  if (!$("scene").hidden && !sceneAsked && settings.detector.digits) refreshScene();
}

for (const [index, tab] of tabs.entries()) {
  tab.addEventListener("click", () => choose(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const next = tabs[(index + step + tabs.length) % tabs.length];
    next.focus();
    choose(next);
  });
}

function opened(file) {
  if (!file) return;
  if ($("scene").hidden) openPicture(file);
  else attempt(() => scene(answer("api/scene", file)));
}

for (const [button, input] of [["open", "file"], ["open-scene", "scene-file"]]) {
  $(button).addEventListener("click", () => $(input).click());
  $(input).addEventListener("change", () => {
    opened($(input).files[0]);
    $(input).value = "";
  });
}
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dropping");
});
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  opened(event.dataTransfer.files[0]);
});
document.addEventListener("keydown", (event) => {
  const free = !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest("select");
  if (free && /^[0-9]$/.test(event.key) && !$("digit").hidden) example(Number(event.key));
});

$("random").addEventListener("click", () => example());
$("clear").addEventListener("click", clearDigit);
$("size").addEventListener("input", () => setSize(2 ** $("size").valueAsNumber));
$("truth").addEventListener("change", () => {
  state.known = $("truth").value === "" ? null : Number($("truth").value);
  showTruth();
});
$("new-scene").addEventListener("click", refreshScene);
$("background").addEventListener("change", refreshScene);

// The beginning

function element(kind, className, text = "") {
  const made = document.createElement(kind);
  made.className = className;
  made.textContent = text;
  return made;
}

/** The second tab for a detector of the user's own: no scenes of digits, their classes and their threshold. */
function buildOwn({ classes, threshold }) {
  for (const id of ["new-scene", "scene-background"]) $(id).hidden = true;
  $("scene-drop").hidden = false;
  $("open-scene").className = "main";
  $("tab-scene").textContent = "Your detector";
  $("scene-title").textContent = "Your objects, anywhere and of any size";
  $("scene-lead").textContent = "Your detector looks at every point of a picture at every scale, and shows what has a "
    + `probability of at least ${percent(threshold)}.`;
  $("legend").replaceChildren(...classes.map((one) => {
    const named = element("span", "", one.name);
    named.style.setProperty("--class", one.colour);
    return named;
  }));
}

function build() {
  if (settings.furthest) {
    picture.tabIndex = 0;
    picture.classList.add("drags");
    picture.setAttribute("aria-label", `${picture.getAttribute("aria-label")}. Arrow keys move the digit.`);
    $("drag").hidden = false;
  }
  $("views").textContent = settings.everywhere
    ? `windows of σ·${settings.window} pixels at every place of the image, and shows the one where it finds the answer`
      + ` strongest, as ${settings.window} × ${settings.window}`
    : `σ·${settings.window} pixels about the centre and sees them as ${settings.window} × ${settings.window}`;
  $("tabs").hidden = !settings.detector;
  if (settings.detector && !settings.detector.digits) buildOwn(settings.detector);
  const slider = $("size");
  Object.assign(slider, { min: Math.log2(settings.smallest), max: Math.log2(settings.largest), step: 1 / 16 });
  settings.sizes.forEach((size, index) => {
    const trained = settings.trained.some((each) => Math.abs(Math.log2(each / size)) < 0.01);
    $("ticks").append(element("span", trained ? "trained" : "", (index % 4 ? "" : name(size)) + (trained ? "▲" : "")));
    for (const id of ["strip-channels", "strip-plain"]) {
      const cell = element("span", "");
      cell.addEventListener("click", () => setSize(size));
      $(id).append(cell);
    }
  });
  if (settings.trained.length === 1) $("learnt").textContent = `digits of size ${name(settings.trained[0])} (▲) alone`;
  document.documentElement.style.setProperty("--channels", settings.scales.length);
  for (const scale of settings.scales) {
    const cell = element("div", "window"), canvas = element("canvas", "");
    canvas.width = canvas.height = settings.window;
    cell.append(canvas, element("div", "weight"), `σ ${name(scale)}`);
    $("windows").append(cell);
  }
  for (let digit = 0; digit < 10; digit++) {
    $("truth").append(new Option(digit, digit));
    const row = $("logits").tBodies[0].insertRow();
    const head = element("th", "", digit);
    head.scope = "row";
    row.append(head);
    for (const _ of settings.scales) row.insertCell();
    for (const bars of document.querySelectorAll(".bars")) {
      const bar = element("div", "");
      bar.append(element("i", ""), digit);
      bars.append(bar);
    }
  }
}

await attempt(async () => {
  settings = await answer("api/settings");
  build();
  clearDigit();
  setSize(settings.trained[0] ?? 2);
  if (location.hash === "#scene" && settings.detector) choose(tabs[1]);
  await example();
  document.body.dataset.ready = "yes";
});
$("loading").hidden = true;
