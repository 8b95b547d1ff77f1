// A digit at any size, as MNIST Large Scale has them: `large_scale` of scalechannels/data/mnist_large_scale.py.
//
//   digit (28, 28) → rescaled → smoothed → stretched to [0, 255] → (2/π)·arctan(0.02·(I − 128)), (side, side)

const DIGIT = 28, SMOOTHING = 7 / 8, GAIN = 0.02, MIDDLE = 128;

/** The image (side² float32) of a digit (784 bytes), `size` times as large as in MNIST. */
export function largeScale(digit, size, side) {
  // The rescaled digit lies in `support` pixels about the centre, the smoothed one in `frame`: the rest is background.
  const half = (size * (DIGIT - 1)) / 2 + 2 * Math.max(1, size);
  const support = Math.min(side, 2 * Math.ceil(half) + (side % 2));
  const frame = Math.min(side, support + 2 * Math.ceil(4 * SMOOTHING * size));
  const rescaled = onBothSides(rescaling(size, support), digit, support, DIGIT);
  for (let i = 0; i < rescaled.length; i++) rescaled[i] = Math.min(256, Math.max(0, rescaled[i]));
  const smooth = onBothSides(smoothing((SMOOTHING * size) ** 2, frame, support), rescaled, frame, support);
  let darkest = Infinity, brightest = -Infinity;
  for (const value of smooth) {
    darkest = Math.min(darkest, value);
    brightest = Math.max(brightest, value);
  }
  const contrast = brightest - darkest, gain = contrast > 1e-2 ? 255 / contrast : 0;
  const grey = (intensity) => (2 / Math.PI) * Math.atan(GAIN * (intensity - MIDDLE));
  const image = new Float32Array(side * side).fill(grey(0)), margin = (side - frame) / 2;
  for (let row = 0; row < frame; row++) {
    for (let column = 0; column < frame; column++) {
      image[(row + margin) * side + column + margin] = grey((smooth[row * frame + column] - darkest) * gain);
    }
  }
  return image;
}

/** Rescaling about the centre as a matrix (m, 28): Keys' cubic, widened below size 1; see data/rescale.py. */
function rescaling(size, m) {
  const matrix = new Float64Array(m * DIGIT), width = Math.max(1, 1 / size), reach = Math.ceil(2 * width);
  for (let row = 0; row < m; row++) {
    const place = (DIGIT - 1) / 2 + (row - (m - 1) / 2) / size, below = Math.floor(place);
    let total = 0;  // counted over the background beyond the digit, too
    for (let step = -reach; step < reach + 2; step++) total += keysCubic((place - below - step) / width);
    for (let column = 0; column < DIGIT; column++) {
      matrix[row * DIGIT + column] = keysCubic((place - column) / width) / total;
    }
  }
  return matrix;
}

function keysCubic(x) {
  x = Math.abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/** Smoothing of the middle n of m pixels by the discrete Gaussian, mirrored at the border, as a matrix (m, n).
 *
 * An image with its mirror image repeats after 2·m − 2 pixels, and the frequency θ is damped by exp(t (cos θ − 1)).
 */
function smoothing(variance, m, n) {
  const period = 2 * m - 2, first = (m - n) / 2;
  const cosines = Float64Array.from({ length: period }, (_, k) => Math.cos((2 * Math.PI * k) / period));
  const damping = cosines.map((cosine) => Math.exp(variance * (cosine - 1)));
  const kernel = cosines.map((_, distance) =>
    damping.reduce((sum, factor, k) => sum + factor * cosines[(k * distance) % period], 0) / period);
  const matrix = new Float64Array(m * n);
  for (let row = 0; row < m; row++) {
    for (let column = first; column < first + n; column++) {
      const both = kernel[Math.abs(row - column)] + kernel[(row + column) % period];
      const edge = column === 0 || column === m - 1;  // its own mirror image
      matrix[row * n + column - first] = edge ? both / 2 : both;
    }
  }
  return matrix;
}

/** A·X·Aᵀ of a matrix A (m, n) and an image X (n, n). */
function onBothSides(matrix, image, m, n) {
  const half = new Float64Array(m * n), whole = new Float64Array(m * m);  // A·X, and all of it
  for (let row = 0; row < m; row++) {
    for (let k = 0; k < n; k++) {
      const weight = matrix[row * n + k];
      if (weight) for (let column = 0; column < n; column++) half[row * n + column] += weight * image[k * n + column];
    }
    for (let column = 0; column < m; column++) {
      let sum = 0;
      for (let k = 0; k < n; k++) sum += half[row * n + k] * matrix[column * n + k];
      whole[row * m + column] = sum;
    }
  }
  return whole;
}
