"use strict";

const form = document.getElementById("upload");
const input = form.querySelector("input");
const uploads = document.getElementById("uploads");
const maxBytes = Number(form.dataset.max);
const mayOverwrite = form.dataset.overwrite === "true";

input.addEventListener("change", () => {
  uploadAll([...input.files]);
  input.value = "";
});
form.addEventListener("dragover", event => {
  event.preventDefault();
  form.classList.add("over");
});
form.addEventListener("dragleave", () => form.classList.remove("over"));
form.addEventListener("drop", event => {
  event.preventDefault();
  form.classList.remove("over");
  uploadAll([...event.dataTransfer.files]);
});

async function uploadAll(files) {
  const items = files.map(file => ({ file, item: addItem(file.name) }));
  for (const { file, item } of items) {
    try {
      await upload(file, item);
      item.set("done", "saved");
    } catch (error) {
      item.set("failed", error.message);
    }
  }
  await showFiles();
  await showCounters();
}

async function upload(file, item) {
  const target = new URL(encodeURIComponent(file.name), location.href);
  if (file.size > maxBytes) {
    throw new Error("too large");
  }
  // A refusal is not heard while the browser sends, so the likely one is asked for first.
  if (!mayOverwrite && [...(await fetchFiles()).querySelectorAll("a")].some(link => new URL(link.getAttribute("href"), location.href).pathname.replace(/\/$/, "") === target.pathname)) {
    throw new Error("there already");
  }
  await new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", target);
    request.upload.addEventListener("progress", event => item.progress(event.loaded, event.total));
    request.addEventListener("load", () => request.status === 201 ? resolve() : reject(new Error(request.responseText.trim() || `status ${request.status}`)));
    request.addEventListener("error", () => reject(new Error("the connection broke")));
    request.send(file);
  });
}

function addItem(name) {
  const item = document.createElement("li");
  const label = Object.assign(document.createElement("span"), { className: "name", textContent: name });
  const state = Object.assign(document.createElement("span"), { className: "state", textContent: "waiting" });
  const bar = Object.assign(document.createElement("progress"), { max: 1, value: 0 });
  item.append(label, state, bar);
  uploads.append(item);
  return {
    progress(loaded, total) {
      bar.value = total === 0 ? 1 : loaded / total;
      state.textContent = `${Math.floor(bar.value * 100)} %`;
    },
    set(className, text) {
      item.className = className;
      state.textContent = text;
      bar.remove();
    },
  };
}

async function showFiles() {
  document.getElementById("files").replaceWith(await fetchFiles());
}

// The table as the server would show it now.
async function fetchFiles() {
  return new DOMParser().parseFromString(await (await fetch(location.href)).text(), "text/html").getElementById("files");
}

async function showCounters() {
  const text = await (await fetch("/metrics")).text();
  const counters = document.getElementById("counters");
  counters.replaceChildren();
  for (const line of text.split("\n")) {
    // Counters and gauges, and of a histogram how many there were.
    const match = /^pipelines_file_(\w+?)(?:_total)?(\{[^}]*\})? (\d+)$/.exec(line);
    if (match && !match[1].endsWith("_bucket")) {
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
