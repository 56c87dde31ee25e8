"use strict";

const form = document.getElementById("upload");
const input = form.querySelector("input");
const uploads = document.getElementById("uploads");
const message = document.getElementById("message");
const maxBytes = Number(form.dataset.max);
const mayOverwrite = form.dataset.overwrite === "true";
const gone = "the server does not answer";
// Files of this size and more are sent such that they go on where they broke off (tus 1.0), after a reload, too.
const resumableFrom = 1 << 20;
const stored = "upload ";
let running = 0;
let queue = Promise.resolve();

input.addEventListener("change", () => {
  uploadAll([...input.files].map(file => ({ file, isFolder: false })));
  input.value = "";
});

// Anywhere: the browser would leave the page for what is dropped beside a box, and its uploads would end.
addEventListener("dragover", event => {
  event.preventDefault();
  document.body.classList.add("over");
});
addEventListener("dragleave", event => event.relatedTarget === null && document.body.classList.remove("over"));
addEventListener("drop", event => {
  event.preventDefault();
  document.body.classList.remove("over");
  uploadAll([...event.dataTransfer.items]
    .filter(item => item.kind === "file")
    .map(item => ({ file: item.getAsFile(), isFolder: item.webkitGetAsEntry?.()?.isDirectory === true })));
});
addEventListener("beforeunload", event => running > 0 && event.preventDefault());

function uploadAll(files) {
  files.map(({ file, isFolder }) => addItem(file, isFolder)).forEach(enqueue);
}

// One after the other. A paused one lets the others pass.
function enqueue(item) {
  running++;
  const stop = item.stop = new AbortController();
  queue = queue.then(async () => {
    try {
      stop.signal.throwIfAborted();
      await upload(item);
      item.set("done", "saved");
    } catch (error) {
      if (error !== "paused") {
        item.set("failed", error.message ?? error);
      }
    }
    running--;
    if (running === 0) {
      await showFiles();
      await showCounters();
    }
  });
}

async function upload(item) {
  const { file } = item;
  if (item.isFolder) {
    throw new Error("a folder: drop the files in it");
  }
  if (file.name.startsWith(".")) {
    throw new Error("names that begin with a dot are not taken");
  }
  if (file.size > maxBytes) {
    throw new Error("too large");
  }
  // A refusal is not heard while the browser sends: what is known to be there is not sent at all.
  if (!mayOverwrite && [...document.querySelectorAll("#files td a")].some(link => link.textContent.replace(/\/$/, "") === file.name)) {
    throw new Error("there already");
  }
  const target = new URL(encodeURIComponent(file.name), location.href);
  await (file.size < resumableFrom ? sendWhole(item, target) : sendResumably(item, target));
}

async function sendWhole(item, target) {
  const request = await send("PUT", target, {}, item, 0).catch(async error => {
    throw error instanceof TypeError ? new Error(await whyBroken(target)) : error;
  });
  if (request.status !== 201 && request.status !== 200) {
    throw new Error(request.status === 404 ? "this folder is not there any more" : textOf(request));
  }
}

// Asks for the offset and sends the rest, until all is there or the server refuses it.
async function sendResumably(item, target) {
  const { file, stop: { signal } } = item;
  const key = keyOf(file);
  let url = localStorage.getItem(key);
  for (let failures = 0; ; failures++) {
    let answer;
    try {
      if (url === null) {
        answer = await tus("POST", "/uploads", { "Upload-Length": file.size, "Upload-Metadata": `target ${btoa(target.pathname)}` }, signal);
        if (answer.status === 201) {
          url = answer.headers.get("Location");
          remember(key, url);
        }
      }
      if (url !== null) {
        answer = await tus("HEAD", url, {}, signal);
        if (answer.status === 404 || answer.status === 410) {
          localStorage.removeItem(key);
          url = null;
          continue;
        }
        const offset = Number(answer.headers.get("Upload-Offset"));
        if (answer.ok && offset < file.size) {
          const request = await send("PATCH", url, { "Tus-Resumable": "1.0.0", "Upload-Offset": offset, "Content-Type": "application/offset+octet-stream" }, item, offset);
          answer = { status: request.status, ok: request.status === 204, text: () => textOf(request) };
        }
        if (answer.ok) {
          localStorage.removeItem(key);
          return;
        }
      }
    } catch (error) {
      signal.throwIfAborted();
      answer = { status: 0 };
    }
    // 409: at another offset; 423: the request before is not over yet; 0: no answer. All others that are no failure of the server are for good.
    if (answer.status !== 0 && answer.status < 500 && answer.status !== 409 && answer.status !== 423) {
      localStorage.removeItem(key);
      throw new Error(answer.status === 404 ? "this folder is not there any more" : (await answer.text()).trim() || `status ${answer.status}`);
    }
    item.wait(answer.status === 0 ? gone : "trying again");
    await sleep(Math.min(5000, 100 * 2 ** failures), signal);
  }
}

const tus = (method, url, headers, signal) => fetch(url, { method, headers: { "Tus-Resumable": "1.0.0", ...headers }, signal });

// XMLHttpRequest, because fetch tells no progress.
function send(method, url, headers, item, offset) {
  const { file, stop: { signal } } = item;
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    Object.entries(headers).forEach(([name, value]) => request.setRequestHeader(name, value));
    request.upload.addEventListener("progress", event => item.progress(offset + event.loaded, file.size));
    request.addEventListener("load", () => resolve(request));
    request.addEventListener("abort", () => reject(signal.reason));
    request.addEventListener("error", () => reject(new TypeError("the connection broke")));
    signal.addEventListener("abort", () => request.abort());
    request.send(file.slice(offset));
  });
}

const textOf = request => request.responseText.trim() || `status ${request.status}`;

function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

// What is remembered of an upload that is not finished: the folder, and what tells the same file when it is chosen again.
const keyOf = file => stored + JSON.stringify([location.pathname, file.name, file.size, file.lastModified]);

function remember(key, url) {
  try {
    localStorage.setItem(key, url);
  } catch {
    // There is no room, so it does not go on after a reload.
  }
}

async function forget(key) {
  const url = localStorage.getItem(key);
  localStorage.removeItem(key);
  // The request that was aborted holds it (423) until the server has noticed. What is not removed expires.
  for (let i = 0; url !== null && i < 8 && (await tus("DELETE", url, {}).catch(() => null))?.status === 423; i++) {
    await new Promise(resolve => setTimeout(resolve, 100 * 2 ** i));
  }
}

function showUnfinished() {
  for (const key of Object.keys(localStorage).filter(key => key.startsWith(stored))) {
    const [folder, name] = JSON.parse(key.slice(stored.length));
    if (folder === location.pathname) {
      const item = addLine(name, "unfinished: choose the file again");
      item.className = "unfinished";
      item.dataset.key = key;
      addButton(item, "Remove", () => {
        item.remove();
        forget(key);
      });
    }
  }
}

// The answer of a server that has ended the connection before everything was sent is lost.
async function whyBroken(target) {
  try {
    const answer = await fetch(target, { method: "HEAD" });
    return answer.ok && !mayOverwrite ? "there already" : "the connection broke";
  } catch {
    return gone;
  }
}

function addLine(name, text) {
  const item = document.createElement("li");
  const label = Object.assign(document.createElement("span"), { className: "name", textContent: name });
  item.append(label, Object.assign(document.createElement("span"), { className: "state", textContent: text }));
  uploads.append(item);
  return item;
}

function addButton(item, text, click) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  button.addEventListener("click", click);
  item.append(button);
  return button;
}

function addItem(file, isFolder) {
  const key = keyOf(file);
  [...uploads.children].find(line => line.dataset.key === key)?.remove();
  const item = addLine(file.name, "waiting");
  const state = item.querySelector(".state");
  const isResumable = file.size >= resumableFrom;
  const pause = isResumable ? addButton(item, "Pause", () => {
    if (pause.textContent === "Pause") {
      shown.stop.abort("paused");
      shown.pause();
    } else {
      pause.textContent = "Pause";
      state.textContent = "waiting";
      enqueue(shown);
    }
  }) : null;
  const cancel = addButton(item, "Cancel", () => {
    shown.stop.abort("canceled");
    shown.set("failed", "canceled");
    if (isResumable) {
      forget(key);
    }
  });
  const bar = Object.assign(document.createElement("progress"), { max: 1, value: 0 });
  item.append(bar);
  const shown = {
    file,
    isFolder,
    stop: null,
    progress(loaded, total) {
      bar.value = total === 0 ? 1 : loaded / total;
      state.textContent = `${Math.floor(bar.value * 100)} %`;
    },
    wait(text) {
      state.textContent = text;
    },
    pause() {
      pause.textContent = "Resume";
      state.textContent = "paused";
    },
    set(className, text) {
      item.className = className;
      state.textContent = text;
      bar.remove();
      cancel.remove();
      pause?.remove();
    },
  };
  return shown;
}

// The names as the server would show them now.
async function showFiles() {
  try {
    const answer = await fetch(location.href);
    const files = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("files");
    message.textContent = files ? "" : answer.status === 404 ? "This folder is not there any more." : `The server answers with status ${answer.status}.`;
    if (files) {
      document.getElementById("files").replaceWith(files);
    }
  } catch {
    message.textContent = "The server does not answer.";
  }
}

async function showCounters() {
  let text;
  try {
    text = await (await fetch("/metrics")).text();
  } catch {
    return;
  }
  const counters = document.getElementById("counters");
  counters.replaceChildren();
  for (const line of text.split("\n")) {
    const match = /^(?:pipelines_file|fileserver)_(\w+?)(?:_total)?(\{[^}]*\})? (\d+)$/.exec(line);
    if (match) {
      const name = Object.assign(document.createElement("dt"), { textContent: match[1].replaceAll("_", " ") + (match[2] ?? "") });
      const value = Object.assign(document.createElement("dd"), { textContent: Number(match[3]).toLocaleString("en") });
      const pair = document.createElement("div");
      pair.append(name, value);
      counters.append(pair);
    }
  }
}

showUnfinished();
showCounters();
setInterval(() => document.hidden || showCounters(), 2000);
