/** The words of the page of one's own lock, in both languages. */

import { choose } from './choose.js';

export const zh = {
  mineClaim: '三段 Redis 脚本就是一把锁：KEYS[1] 是锁，ARGV[1] 是谁，ARGV[2] 是租约（毫秒）。返回 1、OK 或文字是“成了”，返回 0、false 或 nil 是“没成”。脚本里不能有循环和函数，只能碰 KEYS[1]。',
  mineStages: '从这里开始：', mineNoStage: '没有 2.3：脚本判断并删除是一步，那就是 2.5。',
  mineStage: (/** @type {string} */ section) => `${section} ${choose({ 2.1: 'SETNX', 2.2: '带租约', 2.5: '先判断再删除', 2.6: '可重入', 2.7: '自动续期' }, section) ?? ''}`.trim(),
  mineAcquire: '加锁', mineRelease: '解锁', mineRenew: '续期（不续期就空着）',
  mineRefused: '没有保存：标出的那一段不合规则。', mineSave: '保存', mineSaved: '保存了：/check/lock/mine 就用它。', mineSell: '用它在三个实例上卖', mineGrade: '打分',
  mineGrading: '正在打分，约两秒…', mineGraded: (/** @type {number} */ passed, /** @type {number} */ failed, /** @type {number} */ untried) => `通过 ${passed}，没通过 ${failed}，未能测试 ${untried}。`,
  mineOther: '打分时已经有人换了脚本：这些分是别人那把锁的。',
  mineGrades: '打分',
  mineTrial: (/** @type {string} */ name) => choose({
    exclusion: '互斥：8 个一起抢', 'holder-dies': '持有者死了', 'late-release': '迟到的解锁', 'foreign-release': '解别人的锁',
    're-entry': '重入', 'long-job': '业务比租约长', fairness: '公平：先来先得',
  }, name),
  mineVerdict: (/** @type {string} */ verdict) => choose({ passed: '通过', failed: '没通过', untried: '未能测试', none: '还没打分' }, verdict),
  mineRace: (/** @type {string} */ name) => `时间线：${zh.mineTrial(name)}`,
};

/** @type {typeof zh} */
export const en = {
  mineClaim: 'Three scripts of Redis make a lock: KEYS[1] is the lock, ARGV[1] who asks, ARGV[2] the lease in ms. They answer 1, OK or a text for yes, and 0, false or nil for no. A script has no loops and no functions, and touches KEYS[1] alone.',
  mineStages: 'Begin with:', mineNoStage: 'There is no 2.3: a script checks and deletes in one step, which is 2.5.',
  mineStage: (section) => `${section} ${choose({ 2.1: 'SETNX', 2.2: 'with a lease', 2.5: 'compare, then delete', 2.6: 're-entrant', 2.7: 'renewed' }, section) ?? ''}`.trim(),
  mineAcquire: 'Acquire', mineRelease: 'Release', mineRenew: 'Renew (empty: no renewal)',
  mineRefused: 'Not saved: the script that is marked breaks a rule.', mineSave: 'Save', mineSaved: 'Saved: /check/lock/mine uses it.', mineSell: 'Sell with it on three instances', mineGrade: 'Grade it',
  mineGrading: 'Grading, about two seconds…', mineGraded: (passed, failed, untried) => `${passed} passed, ${failed} failed, ${untried} untried.`,
  mineOther: 'Somebody else had saved other scripts by then: these are the grades of that lock.',
  mineGrades: 'Grades',
  mineTrial: (name) => choose({
    exclusion: 'Exclusion: eight at once', 'holder-dies': 'The holder dies', 'late-release': 'A late release', 'foreign-release': 'A foreign release',
    're-entry': 'Re-entry', 'long-job': 'A job longer than its lease', fairness: 'Fairness: first come, first served',
  }, name),
  mineVerdict: (verdict) => choose({ passed: 'passed', failed: 'failed', untried: 'untried', none: 'not graded yet' }, verdict),
  mineRace: (name) => `Timeline: ${en.mineTrial(name)}`,
};
