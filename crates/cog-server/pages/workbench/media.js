// Media: chosen, dropped or pasted for an input, and shown in an answer.

import { mediaAt, mediaPathOf, upload } from "./api.js";
import { button, h } from "./dom.js";
import { isContainer } from "./path.js";
import { t } from "./texts.js";

const TAGS = [["image/", "img"], ["audio/", "audio"], ["video/", "video"]];
/** The local addresses of uploaded files, for their previews: by upload, the last ones. */
const previews = new Map();
const PREVIEWS = 32;

/**
 * A field for a media file: by choice, drop or paste. Its value refers to the upload.
 * @param {any} value @param {(value: any) => void} change
 */
export function mediaEditor(value, change) {
  const status = h("span.hint", { role: "status" });
  const preview = h("div.media", {});
  const input = h("input", { type: "file", accept: "image/*,audio/*,video/*,application/pdf", "aria-label": t("chooseFile") });
  const clear = button(t("remove"), () => {
    change(null);
    draw(null);
    status.textContent = "";
  }, { hidden: true });
  const draw = (source) => {
    clear.hidden = !isContainer(source);
    preview.replaceChildren(...(isContainer(source) ? [previewOf(source)] : []));
  };
  const take = async (file) => {
    status.textContent = t("uploading", { name: file.name });
    status.className = "hint";
    try {
      const { source, done } = await upload(file);
      remember(source.upload_id, file, done.media_type);
      change(source);
      draw(source);
      status.textContent = t("uploaded", { name: file.name, type: done.media_type, bytes: done.size_bytes });
    } catch (error) {
      status.textContent = error.message;
      status.className = "error";
    }
    input.value = "";
  };
  const zone = h("div.drop", {
    tabIndex: 0, role: "group", "aria-label": t("dropHere"),
    ondragover: (event) => event.preventDefault(),
    ondrop: (event) => {
      event.preventDefault();
      const [file] = event.dataTransfer.files;
      if (file) take(file);
    },
    onpaste: (event) => {
      const [file] = event.clipboardData.files;
      if (!file) return;
      event.preventDefault();
      take(file);
    },
  }, h("p.hint", {}, t("dropHere")), input, clear, status, preview);
  input.addEventListener("change", () => input.files[0] && take(input.files[0]));
  draw(value);
  return zone;
}

function remember(id, file, type) {
  previews.set(id, { url: URL.createObjectURL(file), type, name: file.name });
  if (previews.size <= PREVIEWS) return;
  const [oldest] = previews.keys();
  URL.revokeObjectURL(previews.get(oldest).url);
  previews.delete(oldest);
}

/** What can be shown of a source in an input. */
function previewOf(source) {
  const known = previews.get(source.upload_id);
  if (known) return playerOf(known.type, known.url, known.name) ?? h("span", {}, `${known.name}, ${known.type}`);
  return mediaOf(source).map((media) => mediaElement(media)).find(Boolean) ?? h("code", {}, String(source.url ?? source.path ?? source.upload_id ?? source.type));
}

/** The media files of a value, at any depth, at most 100. */
export function mediaOf(value, found = []) {
  if (!isContainer(value) || found.length >= 100) return found;
  if (typeof value.media_type === "string" && (value.type === "url" || value.type === "base64")) found.push(value);
  else for (const inner of Object.values(value)) mediaOf(inner, found);
  return found;
}

function playerOf(type, address, name) {
  const [, tag] = TAGS.find(([kind]) => type.startsWith(kind)) ?? [];
  if (!tag) return undefined;
  return tag === "img" ? h("img", { src: address, alt: name }) : h(tag, { src: address, controls: true, "aria-label": name });
}

/**
 * A player for a media file that is inside the answer or on this server; `undefined` for others.
 * @param {{type: string, media_type: string, url?: string, data?: string}} media
 */
export function mediaElement({ type, media_type, url, data }) {
  const path = type === "url" ? mediaPathOf(url) : undefined;
  if (type === "url" && !path) return undefined;
  const element = playerOf(media_type, "data:,", t("generated"));
  if (!element) return undefined;
  if (!path) element.src = `data:${media_type};base64,${data}`;
  else mediaAt(path).then((blob) => showBlob(element, blob), (error) => element.replaceWith(t("notShown", { why: error.message })));
  return element;
}

/** Shows bytes. An image releases them once it has loaded; a player needs them for as long as it exists. */
function showBlob(element, blob) {
  const address = URL.createObjectURL(blob);
  if (element.tagName === "IMG") element.addEventListener("load", () => URL.revokeObjectURL(address));
  element.src = address;
}
