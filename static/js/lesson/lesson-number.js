/** What stands for a lesson where people read: its number, the section that it belongs to (§3.4.2), or its text ([003]). Its id is in the address. */

/** A lesson's number is a plain section. @param {string} id */
export const isNumber = (id) => /^\d(\.\d+)*$/.test(id);

/** @param {string} id @returns {string} */
export function numberOf(id) {
  if (isNumber(id)) return id;
  const [section] = /^\d{3}(?=\.|$)|^\d(?:\.\d+)*/.exec(id) ?? [''];
  return section.length === 3 && !section.includes('.') ? `[${section}]` : section && `§${section}`;
}

/** The number and the title. @param {{id: string, title: {zh: string, en: string}}} lesson @param {'zh' | 'en'} lang */
export const nameOf = ({ id, title }, lang) => `${numberOf(id)} ${title[lang]}`.trim();
