/** The browser's storage. It may be refused (private windows, policies); then nothing is stored, and the page works all the same. */

/** @param {() => Storage} storage @returns {{get: (name: string) => any, set: (name: string, value: any) => void}} */
function storeIn(storage) {
  return {
    get(name) {
      try {
        return JSON.parse(storage().getItem(`oversell.${name}`) ?? 'null');
      } catch {
        return null;
      }
    },
    set(name, value) {
      try {
        storage().setItem(`oversell.${name}`, JSON.stringify(value));
      } catch { /* refused */ }
    },
  };
}

/** For ever: language and theme. */
export const localStore = storeIn(() => localStorage);
/** Until the tab is closed: results. */
export const sessionStore = storeIn(() => sessionStorage);
