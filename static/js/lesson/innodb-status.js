/** Parses the part LATEST DETECTED DEADLOCK of SHOW ENGINE INNODB STATUS, as MySQL and MariaDB write it. Pure. */

/** A row lock. `id`: only of the primary key; `end`: beyond the last row. */
/** @typedef {{mode: string, index: string, id: number | null, end: boolean, kind: 'row' | 'gap' | 'next-key' | 'insert'}} Lock */
/** @typedef {{number: number, waits: Lock[]}} Transaction */

/** InnoDB stores a signed four-byte number with its sign bit inverted. */
const SIGN_BIT = 0x8000_0000;

/** @param {string} text @returns {{transactions: Transaction[], rolledBack: number}} `rolledBack`: 0 if unknown */
export function parseDeadlock(text) {
  /** @type {Transaction[]} */
  const transactions = [];
  let number = 0;
  for (const part of text.split(/^\*\*\* /m).slice(1)) {
    number = Number(/^\((\d+)\)/.exec(part)?.[1] ?? number);
    if (/TRANSACTION:/.test(part.split('\n')[0])) transactions.push({ number, waits: [] });
    const owner = transactions.find((transaction) => transaction.number === number);
    const lock = parseLock(part);
    if (owner && lock && /WAITING FOR THIS LOCK/.test(part)) owner.waits.push(lock);
  }
  return { transactions, rolledBack: Number(/WE ROLL BACK TRANSACTION \((\d+)\)/.exec(text)?.[1] ?? 0) };
}

/** @param {string} part @returns {Lock | null} */
function parseLock(part) {
  const match = /RECORD LOCKS .*? index `?(\w+)`? of table .*? lock_?mode ([XS])(.*)/.exec(part);
  if (!match) return null;
  const [, index, mode, rest] = match;
  const end = /asc supremum/.test(part);
  const hex = index === 'PRIMARY' && !end ? /^ 0: len 4; hex ([0-9a-f]{8});/m.exec(part)?.[1] : undefined;
  const kind = /insert intention/.test(rest) ? 'insert' : /rec but not gap/.test(rest) ? 'row' : /gap before rec/.test(rest) ? 'gap' : 'next-key';
  return { mode, index, id: hex ? parseInt(hex, 16) - SIGN_BIT : null, end, kind };
}
