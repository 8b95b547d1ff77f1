// Answers without a server: a worker runs the exported networks, so that the page never waits for them.

const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
const asked = new Map();  // what is not answered yet, by its number
let count = 0;

/** The answer to a path and to what is given with it: nothing, an object, or an image file. Errors are sentences. */
export function answer(path, given) {
  return new Promise((resolve, reject) => {
    asked.set(++count, { resolve, reject });
    worker.postMessage({ number: count, path, given });
  });
}

worker.addEventListener("message", ({ data }) => {
  const { resolve, reject } = asked.get(data.number);
  asked.delete(data.number);
  if (data.error) reject(new Error(data.error));
  else resolve(data.content);
});

worker.addEventListener("error", () => {
  for (const { reject } of asked.values()) {
    reject(new Error("The networks could not be started: a file of this page is missing, or the browser is too old."));
  }
  asked.clear();
});
