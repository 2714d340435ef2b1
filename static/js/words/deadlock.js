/** The words of deadlocks in both languages. */

/** @typedef {import('../lesson/innodb-status.js').Lock} Lock */

/** The verb of a statement and what it is about, as `UPDATE id = 10`: whole statements do not fit beside each other. @param {string} [sql] */
export function shortStatement(sql = '') {
  const [verb] = sql.split(' ');
  const about = / WHERE (.+)$/.exec(sql)?.[1] ?? / VALUES \((\w+)/.exec(sql)?.[1] ?? '';
  return about ? `${verb} ${about}` : sql.replace('START TRANSACTION', 'BEGIN');
}

/** @type {import('./all.js').Words} */
export const zh = {
  deadlockTitle: '在真实的 MySQL 上演一遍', deadlockIdle: '按一下，有问题的和修正后的都在真实的 MySQL 上演一遍，并排比一比。', deadlockOrder: '两个事务依次发出的语句',
  deadlockVictim: ({ victim, error, committed }) => (error === 1213
    ? `死锁：InnoDB 回滚了 ${victim}（错误 ${error}），${committed} 提交了。`
    : `${victim} 等锁超时（错误 ${error}），没有提交；${committed} 提交了。`),
  deadlockNone: ({ committed }) => `没有死锁，没有错误：${committed.join(' 和 ')} 都提交了。`,
  deadlockWaits: (n) => `等锁，第 ${n} 步以后才有回答`,
  deadlockError: (n) => (n === 1213 ? `错误 ${n}：死锁，整个事务被回滚` : `错误 ${n}：等锁超时，只撤销这一条`),
  deadlockRows: (n) => `这个事务锁住 ${n} 行`,
  deadlockPlan: ({ indexed, type, key, rows }) => `执行计划（${indexed ? '有索引' : '没有索引'}）：type ${type}，key ${key}，要看 ${rows} 行`,
  deadlockAccount: 'InnoDB 自己的报告',
  deadlockLock: (/** @type {Lock} */ { mode, index, id, end, kind }) => {
    const where = end ? '最后一行之后的间隙' : id == null ? `索引 ${index} 上的一行` : kind === 'gap' || kind === 'insert' ? `主键 ${id} 之前的间隙` : `主键 ${id} 那一行`;
    const what = { row: '行锁', gap: '间隙锁', 'next-key': end ? '间隙锁' : '临键锁（行和它前面的间隙）', insert: '插入意向锁' }[kind];
    return `${where}的${mode === 'X' ? '排他' : '共享'}${what}`;
  },
  deadlockWants: (who, lock, other) => `${who} 在等${lock}，${other} 挡着`,
  deadlockEnded: (victim, other) => `互相等待成了环：InnoDB 回滚 ${victim}，${other} 就能继续。`,
};

/** @type {import('./all.js').Words} */
export const en = {
  deadlockTitle: 'Play it on the real MySQL', deadlockIdle: 'One press plays the flaw and its cure on the real MySQL, side by side.', deadlockOrder: 'What the two transactions send, in order',
  deadlockVictim: ({ victim, error, committed }) => (error === 1213
    ? `A deadlock: InnoDB rolled ${victim} back (error ${error}), and ${committed} committed.`
    : `${victim} waited too long for a lock (error ${error}) and did not commit; ${committed} did.`),
  deadlockNone: ({ committed }) => `No deadlock and no error: ${committed.join(' and ')} committed.`,
  deadlockWaits: (n) => `waits, and is answered after step ${n}`,
  deadlockError: (n) => (n === 1213 ? `error ${n}: a deadlock; the whole transaction is rolled back` : `error ${n}: waited too long; only this statement is undone`),
  deadlockRows: (n) => `its transaction has locked ${n} ${n === 1 ? 'row' : 'rows'}`,
  deadlockPlan: ({ indexed, type, key, rows }) => `The plan ${indexed ? 'with the index' : 'without an index'}: type ${type}, key ${key}, ${rows} ${rows === '1' ? 'row' : 'rows'} to look at`,
  deadlockAccount: 'What InnoDB itself says',
  deadlockLock: (/** @type {Lock} */ { mode, index, id, end, kind }) => {
    const where = end ? 'the gap after the last row' : id == null ? `a row of the index ${index}` : kind === 'gap' || kind === 'insert' ? `the gap before ${id}` : `row ${id}`;
    const what = { row: 'lock', gap: 'gap lock', 'next-key': end ? 'gap lock' : 'next-key lock (the row and the gap before it)', insert: 'insert intention lock' }[kind];
    return `${mode === 'X' ? 'an exclusive' : 'a shared'} ${what} on ${where}`;
  },
  deadlockWants: (who, lock, other) => `${who} waits for ${lock}; ${other} is in the way`,
  deadlockEnded: (victim, other) => `Each waits for the other: InnoDB rolls ${victim} back, and ${other} goes on.`,
};
