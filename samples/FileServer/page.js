"use strict";

const form = document.getElementById("upload");
const input = form.querySelector("input");
const uploads = document.getElementById("uploads");
const message = document.getElementById("message");
const maxBytes = Number(form.dataset.max);
const mayOverwrite = form.dataset.overwrite === "true";
const gone = "the server does not answer";
let running = 0;

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

async function uploadAll(files) {
  running++;
  const items = files.map(({ file, isFolder }) => ({ file, isFolder, item: addItem(file.name) }));
  for (const { file, isFolder, item } of items) {
    if (!item.isCanceled) {
      try {
        await upload(file, isFolder, item);
        item.set("done", "saved");
      } catch (error) {
        item.set("failed", error.message);
      }
    }
  }
  running--;
  if (running === 0) {
    await showFiles();
    await showCounters();
  }
}

async function upload(file, isFolder, item) {
  if (isFolder) {
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
  await new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", target);
    request.upload.addEventListener("progress", event => item.progress(event.loaded, event.total));
    request.addEventListener("load", () => {
      const text = request.status === 404 ? "this folder is not there any more" : request.responseText.trim() || `status ${request.status}`;
      return request.status === 201 || request.status === 200 ? resolve() : reject(new Error(text));
    });
    request.addEventListener("abort", () => reject(new Error("canceled")));
    request.addEventListener("error", async () => reject(new Error(await whyBroken(target))));
    item.onCancel = () => request.abort();
    request.send(file);
  });
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

function addItem(name) {
  const item = document.createElement("li");
  const label = Object.assign(document.createElement("span"), { className: "name", textContent: name });
  const state = Object.assign(document.createElement("span"), { className: "state", textContent: "waiting" });
  const cancel = Object.assign(document.createElement("button"), { type: "button", textContent: "Cancel" });
  const bar = Object.assign(document.createElement("progress"), { max: 1, value: 0 });
  item.append(label, state, cancel, bar);
  uploads.append(item);
  const shown = {
    isCanceled: false,
    onCancel: null,
    progress(loaded, total) {
      bar.value = total === 0 ? 1 : loaded / total;
      state.textContent = `${Math.floor(bar.value * 100)} %`;
    },
    set(className, text) {
      item.className = className;
      state.textContent = text;
      bar.remove();
      cancel.remove();
    },
  };
  cancel.addEventListener("click", () => {
    shown.isCanceled = true;
    if (shown.onCancel) {
      shown.onCancel();
    } else {
      shown.set("failed", "canceled");
    }
  });
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

showCounters();
setInterval(() => document.hidden || showCounters(), 2000);
