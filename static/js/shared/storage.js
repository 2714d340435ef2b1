/**
 * What the browser keeps for us. A browser may refuse (private windows, policies); then nothing is kept, and the
 * page works all the same.
 */

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
      } catch { /* not kept */ }
    },
  };
}

/** For ever: language and theme. */
export const localStore = storeIn(() => localStorage);
/** As long as this tab lives, reloads included: results. */
export const sessionStore = storeIn(() => sessionStorage);
