/** Helpers for the DOM. */

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);

/** An element with attributes and children. Text stays text: an answer of the service cannot become markup. @param {string} name @param {Record<string, any>} [attributes] @param {...(Node | string)} children */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same in SVG's namespace. @param {string} name @param {Record<string, any>} [attributes] @param {...(Node | string)} children */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} element @param {Record<string, any>} attributes @param {(Node | string)[]} children
 */
function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value != null && value !== false) element.setAttribute(key, value === true ? '' : value);
  }
  element.append(...children);
  return element;
}

/** Replaces a box's children. The focus goes to the new child with the same `data-key`, or to the first button. @param {HTMLElement} box @param {Node[]} children */
export function replaceKeepingFocus(box, children) {
  const at = box.contains(document.activeElement) ? document.activeElement : null;
  box.replaceChildren(...children);
  if (!at) return;
  const same = [...box.querySelectorAll('button')].find((button) => button.dataset.key === (at instanceof HTMLElement && at.dataset.key));
  (same ?? box.querySelector('button'))?.focus();
}

/** Sets a text only if it differs, so that nothing is painted or read out twice. @param {Element} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Marks the Chinese words in an English text, so that a screen reader reads them as Chinese. @param {string} text */
export const markChinese = (text) => text.split(/([\u3400-\u9fff\uff00-\uffef]+)/).map((part, i) => (i % 2 ? el('span', { lang: 'zh-CN' }, part) : part));

/** Marks the commands in a Chinese text. @param {string} text */
export const markCode = (text) => text.split(/([\x20-\x7e]{20,})/).map((part, i) => (i % 2 ? el('code', {}, part) : part));

/** Offers a text as a file to save. @param {string} name @param {string} type @param {string} text */
export function download(name, type, text) {
  const href = URL.createObjectURL(new Blob([text], { type }));
  el('a', { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}
