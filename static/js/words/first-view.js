/** The words of the first view in both languages, which come before all others. */

/** @type {import('./all.js').Words} */
export const zh = {
  skip: '跳到正文', lights: '实例与服务器', language: '语言', lessons: '课程', help: '键盘', projector: '投影', search: '找一课',
  raceTitle: '竞态：有问题的和修正后的', race: '演一遍', raceComing: '马上开始…',
  guessLeft: (n) => `猜：${n} 个人都买到了，5,000 件还剩多少？`, guessInside: '猜：同时在里面的，最多几个？',
};

/** @type {import('./all.js').Words} */
export const en = {
  skip: 'Skip to the lesson', lights: 'Instances and servers', language: 'Language', lessons: 'Lessons', help: 'Keyboard', projector: 'Projector', search: 'Find a lesson',
  raceTitle: 'The race: its flaw and its cure', race: 'Play it', raceComing: 'About to begin…',
  guessLeft: (n) => `Guess: ${n} are sold; how many of 5,000 are left?`, guessInside: 'Guess: how many are inside at once, at most?',
};
