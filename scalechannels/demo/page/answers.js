// Answers from the demo's server. The page without a server has another file of this name and interface.

const MAX_FILE = 16e6;

/** The answer to a path and to what is given with it: nothing, an object, or an image file. Errors are sentences. */
export async function answer(path, given) {
  if (given instanceof Blob && given.size > MAX_FILE) throw new Error("This file has more than 16 MB.");
  const [kind, body] = given instanceof Blob ? ["application/octet-stream", given] : ["application/json", JSON.stringify(given)];
  let reply;
  try {
    reply = await fetch(path, given && { method: "POST", headers: { "Content-Type": kind }, body });
  } catch {
    throw new Error("The demo's server does not answer. Is it still running?");
  }
  const content = await reply.json();
  if (!reply.ok) throw new Error(sentence(content.error));
  return content;
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.?!]$/.test(text) ? "" : ".");
