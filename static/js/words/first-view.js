/** The words of the first view in both languages, which come before all others. */

/** @type {import('./all.js').Words} */
export const zh = {
  openingWhat: '分布式锁，亲手弄坏再修好：课程的每一句话，都在真实的 MySQL、Redis、ZooKeeper 上演给你看。',
  openingRun: '卖出 5,000 件', openingNote: '5,000 人来买，同时 100 人，三个实例，没有锁。先把库存放回 5,000 件，约 1 秒。', openingWhy: '下一步：为什么',
  skip: '跳到正文', lights: '实例与服务器', language: '语言', lessons: '课程', help: '键盘', projector: '投影', search: '找一课',
  raceTitle: '竞态：有问题的和修正后的', race: '演一遍', raceComing: '马上开始…', replayCannot: (why) => `现在演不了：${why}`,
};

/** @type {import('./all.js').Words} */
export const en = {
  openingWhat: 'Distributed locks, broken and mended by your own hand: every sentence of the course is played on real MySQL, Redis and ZooKeeper servers.',
  openingRun: 'Sell 5,000', openingNote: '5,000 buyers, 100 at a time, three instances, no lock. The stock is put back to 5,000 first. About 1 s.', openingWhy: 'Next: why',
  skip: 'Skip to the lesson', lights: 'Instances and servers', language: 'Language', lessons: 'Lessons', help: 'Keyboard', projector: 'Projector', search: 'Find a lesson',
  raceTitle: 'The race: its flaw and its cure', race: 'Play it', raceComing: 'About to begin…', replayCannot: (why) => `It cannot be played now: ${why}`,
};
