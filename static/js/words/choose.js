/** One of several texts, by its name. @template T @param {Record<string, T>} texts @param {string | number} name */
export const choose = (texts, name) => texts[name];
