/** The fewest presses that make a race go wrong, found by trying all schedules: `schedule.test.mjs` tries them again. */

/** By the code that runs. @type {Record<string, number>} */
const FEWEST = {
  none: 4, mutex: 4, 'get-then-set': 4, 'mutex-commit-late': 4, 'redis-setnx': 3,
  'redis-setnx-lua-twice': 1, 'table-lock': 3, 'redis-setnx-ttl': 5, 'redis-setnx-owner': 5, 'redis-reentrant': 5, 'redis-lock': 5,
  'redis-watchdog-blind': 5, 'zk-sequential-as-printed': 4,
  'redis-watchdog': 4, 'zk-ephemeral': 4,
  'opposite-order': 4, 'shared-to-exclusive': 4, 'full-scan': 4, gap: 4, 'lock-wait': 3,
};

/** @param {{runs: string}} race @returns {number | undefined} */
export const fewestPresses = ({ runs }) => FEWEST[runs];
