// The ink of a picture as a digit: digit_from_picture of scalechannels/demo/digit.py, with Pillow's resizing. Only the
// file is read by the browser, which knows other formats.

import { EXTENT, SIDE, centreOfMass } from "./drawing.js";

const MAX_PIXELS = 24_000_000;
const FRAME = 3 * SIDE;  // large enough for any shift to the centre of mass
const single = Math.fround;  // PyTorch computes with single precision

/** A digit (784 bytes) from an image file: what differs from the picture's border, darker or lighter. */
export async function digitFromPicture(file) {
  const { grey, width, height } = await read(file);
  const ink = inkOfLevels(grey, width, height);
  let [left, right, top, bottom] = [width, 0, height, 0];
  grey.forEach((level, place) => {
    if (ink[level] <= 0.5) return;
    const column = place % width, row = (place - column) / width;
    [left, right] = [Math.min(left, column), Math.max(right, column + 1)];
    [top, bottom] = [Math.min(top, row), Math.max(bottom, row + 1)];
  });
  const shown = Uint8Array.from(ink, (value) => Math.round(single(value * 255))), box = [];
  for (let row = top; row < bottom; row++) {
    for (let column = left; column < right; column++) box.push(shown[grey[row * width + column]]);
  }
  const zoom = EXTENT / Math.max(right - left, bottom - top);
  const [wide, high] = [right - left, bottom - top].map((side) => Math.max(1, toEven(side * zoom)));
  const across = resizedRows(box, right - left, wide, zoom < 1);
  const small = transposed(resizedRows(transposed(across, wide), bottom - top, high, zoom < 1), high);
  const frame = new Uint8Array(FRAME * FRAME), [x0, y0] = [wide, high].map((side) => Math.floor((FRAME - side) / 2));
  small.forEach((value, place) => {
    frame[(y0 + Math.floor(place / wide)) * FRAME + x0 + (place % wide)] = value;
  });
  const [x, y] = centreOfMass(frame, FRAME).map((off) => toEven(SIDE + off));
  return Uint8Array.from({ length: SIDE * SIDE }, (_, place) =>
    frame[(y + Math.floor(place / SIDE)) * FRAME + x + (place % SIDE)]);
}

/** The grey values of an image file, transparency over white. */
async function read(file) {
  if (!file.size) throw new Error("The file is empty.");
  let picture;
  try {
    picture = await createImageBitmap(file);
  } catch {
    throw new Error("This file is damaged, or not an image.");
  }
  const { width, height } = picture;
  if (width * height > MAX_PIXELS) {
    throw new Error(`It has ${width} x ${height} pixels, more than the limit of ${MAX_PIXELS.toLocaleString("en")}.`);
  }
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.drawImage(picture, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const grey = Uint8Array.from({ length: width * height }, (_, place) =>
    (data[4 * place] * 19595 + data[4 * place + 1] * 38470 + data[4 * place + 2] * 7471 + 0x8000) >> 16);
  return { grey, width, height };
}

/** How much ink each of the 256 grey levels is, from 0 to 1. */
function inkOfLevels(grey, width, height) {
  const border = [], there = new Set(grey);
  for (let column = 0; column < width; column++) border.push(grey[column], grey[(height - 1) * width + column]);
  for (let row = 0; row < height; row++) border.push(grey[row * width], grey[(row + 1) * width - 1]);
  const paper = border.sort((a, b) => a - b)[(border.length - 1) >> 1];
  const unit = (level) => single(level / 255);
  const ink = Array.from({ length: 256 }, (_, level) => Math.abs(single(unit(level) - unit(paper))));
  const most = Math.max(...Array.from(there, (level) => ink[level]));
  if (most < 0.05) throw new Error("This picture has no digit: all of it looks like its border.");
  // Paper is never quite even, ink never quite full.
  return ink.map((value) => Math.min(1, Math.max(0, single(single(single(value / most) - 0.25) / 0.5))));
}

/** Rows of `before` bytes resized to `after` each, by averaging or by Pillow's bicubic filter, in its fixed point. */
function resizedRows(image, before, after, averaging) {
  const height = image.length / before, result = new Uint8Array(height * after);
  if (before === after) return Uint8Array.from(image);
  const filter = averaging ? (x) => (x > -0.5 && x <= 0.5 ? 1 : 0) : bicubic;
  const scale = before / after, widened = Math.max(1, scale), support = (averaging ? 0.5 : 2) * widened;
  for (let column = 0; column < after; column++) {
    const centre = (column + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - support + 0.5));
    const last = Math.min(before, Math.trunc(centre + support + 0.5));
    const weights = Array.from({ length: last - first }, (_, k) => filter((k + first - centre + 0.5) * (1 / widened)));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    const fixed = weights.map((weight) => {
      const share = total ? weight / total : weight;
      return Math.trunc((share < 0 ? -0.5 : 0.5) + share * 2 ** 22);
    });
    for (let row = 0; row < height; row++) {
      const sum = fixed.reduce((so, weight, k) => so + weight * image[row * before + first + k], 2 ** 21);
      result[row * after + column] = Math.min(255, Math.max(0, Math.floor(sum / 2 ** 22)));
    }
  }
  return result;
}

function bicubic(x) {
  x = Math.abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
}

function transposed(image, width) {
  const height = image.length / width;
  return Uint8Array.from({ length: image.length }, (_, place) =>
    image[(place % height) * width + Math.floor(place / height)]);
}

/** Rounded as Python rounds: a half to the even number. */
function toEven(value) {
  const below = Math.floor(value);
  return value - below === 0.5 ? below + (below % 2) : Math.round(value);
}
