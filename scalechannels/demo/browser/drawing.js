// Pen strokes to a digit as MNIST has them: digit_from_strokes of scalechannels/demo/digit.py, operation by operation,
// so that its digits have the same bits.

export const SIDE = 28;
export const EXTENT = 20;  // MNIST fits its digits into 20 of the 28 pixels
const PEN = 2.6;  // the line's width in pixels of the digit
const FINE = 10;  // a pixel is the share of so many points a side that have ink

/** A digit (784 bytes) from strokes, each a list of points [x, y] with y downwards, in any unit. */
export function digitFromStrokes(strokes) {
  const points = strokes.flat();
  if (!points.length) throw new Error("Nothing is drawn yet.");
  const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
  for (const point of points) {
    for (const axis of [0, 1]) {
      low[axis] = Math.min(low[axis], point[axis]);
      high[axis] = Math.max(high[axis], point[axis]);
    }
  }
  // A dot has no size of its own: it is drawn as one, not blown up to a digit. Nor can the least numbers be.
  const longest = Math.max(high[0] - low[0], high[1] - low[1]);
  const zoom = longest > 1e-300 ? (EXTENT - PEN) / longest : 1;
  const placed = strokes.map((stroke) =>
    stroke.map((point) => point.map((side, axis) => (side - (low[axis] + high[axis]) / 2) * zoom)));
  // Once about the middle of its box, to find the centre of mass, and once about that.
  return draw(placed, centreOfMass(draw(placed, [0, 0]), SIDE));
}

/** Strokes in pixels of the digit, `centre` in the middle. */
function draw(strokes, centre) {
  const side = SIDE * FINE, inked = new Uint8Array(side * side), radius = PEN / 2;
  for (const stroke of strokes) {
    const points = stroke.map((point) => point.map((place, axis) => place - centre[axis] + SIDE / 2));
    for (let index = 0; index < Math.max(1, points.length - 1); index++) {
      const start = points[index], end = points[Math.min(index + 1, points.length - 1)];
      const [low, high] = [Math.min, Math.max].map((extreme) => [0, 1].map((axis) => extreme(start[axis], end[axis])));
      const first = low.map((place) => Math.max(0, Math.floor((place - radius) * FINE)));
      const last = high.map((place) => Math.min(side, Math.max(0, Math.ceil((place + radius) * FINE))));
      const dx = end[0] - start[0], dy = end[1] - start[1], length = Math.max(dx * dx + dy * dy, 1e-300);
      for (let row = first[1]; row < last[1]; row++) {
        const y = (row + 0.5) / FINE - start[1];
        for (let column = first[0]; column < last[0]; column++) {
          const x = (column + 0.5) / FINE - start[0];
          const along = Math.min(1, Math.max(0, (x * dx + y * dy) / length));
          const across = x - along * dx, down = y - along * dy;
          if (across * across + down * down <= radius * radius) inked[row * side + column] = 1;
        }
      }
    }
  }
  const counts = new Uint16Array(SIDE * SIDE);
  inked.forEach((ink, place) => {
    counts[Math.floor(place / side / FINE) * SIDE + Math.floor((place % side) / FINE)] += ink;
  });
  return Uint8Array.from(counts, (count) => Math.floor((count / FINE ** 2) * 255 + 0.5));
}

/** x and y of an image's centre of mass, measured from its middle. */
export function centreOfMass(image, side) {
  let total = 0, x = 0, y = 0;
  image.forEach((weight, place) => {
    total += weight;
    x += weight * ((place % side) - (side - 1) / 2);
    y += weight * (Math.floor(place / side) - (side - 1) / 2);
  });
  if (!total) throw new Error("There is no ink in this drawing.");
  return [x / total, y / total];
}
