/**
 * The course: chapters and lessons from `GET /course`, and how an address finds its lesson. Pure.
 *
 * A strategy without a lesson of its own becomes one, so that the page has every strategy.
 */

/** @typedef {{zh: string, en: string}} Title */
/** @typedef {'unsafe' | 'one-process' | 'lease' | 'safe'} PromiseLevel */
/**
 * A strategy of `GET /strategies`. `lease_ms`: the lease that a longer hold outlives; null: it is renewed, or there is none; absent:
 * unknown. `pace`: about how many pieces it sells per second to 100 buyers.
 * @typedef {{slug: string, chapter: string, store: 'mysql' | 'redis', promise: PromiseLevel, needs: string[], beyond: boolean, title: Title, breaks: Title, lease_ms?: number | null, pace: number}} Strategy
 */
/** @typedef {{terminal: number, run: string, expect: string, again: boolean}} Line */
/**
 *
 * @typedef {object} Lesson
 * @property {string} id the section: `2.3`, `003.redlock.clock`
 * @property {Title} title
 * @property {Title | null} claim null: the strategy's title says it
 * @property {string} place where it stands in the documents
 * @property {Strategy[]} strategies
 * @property {string[]} steps of the seckill that it shows
 * @property {string[]} deadlocks
 * @property {string[]} tries paths for a browser; `{who}` is a person's name
 * @property {boolean} timing
 * @property {boolean} loads a load test shows what it claims
 * @property {Title | null} whyNot
 * @property {boolean} startsLab a line starts a lab of its own
 * @property {Line[] | null} byHand null until they are loaded
 */
/** @typedef {{id: string, title: Title | null, lessons: Lesson[]}} Chapter */

/** @param {{chapters: any[]} | null} course `GET /course` @param {Strategy[]} strategies @returns {Chapter[]} */
export function chaptersOf(course, strategies) {
  /** @type {Chapter[]} */
  const chapters = [];
  for (const { id, title, lessons } of course?.chapters ?? []) {
    chapters.push({ id, title, lessons: [] });
    // A lesson is listed under its own number, whatever chapter tells it; errata stay together.
    for (const lesson of lessons) {
      const own = id === 'errata' ? id : lesson.id.split('.')[0];
      if (!chapters.some((c) => c.id === own)) chapters.push({ id: own, title: null, lessons: [] });
      chapters.find((c) => c.id === own)?.lessons.push(lessonOf(lesson, strategies));
    }
  }
  for (const strategy of strategies) {
    if (hasLesson(chapters, strategy)) continue;
    const id = /^\[?(\d+)/.exec(strategy.chapter)?.[1] ?? strategy.chapter;
    let chapter = chapters.find((c) => c.id === id);
    if (!chapter) chapters.push(chapter = { id, title: null, lessons: [] });
    const after = isSection(strategy.chapter)
      ? chapter.lessons.findLastIndex((l) => compareNumbers(numberOf(l), strategy.chapter) <= 0) : chapter.lessons.length - 1;
    chapter.lessons.splice(after + 1, 0, lessonOfStrategy(strategy, chapter.lessons));
  }
  return chapters.filter((chapter) => chapter.lessons.length).sort((a, b) => a.id.length - b.id.length || compareNumbers(a.id, b.id));
}

/** @param {any} lesson of `GET /course` @param {Strategy[]} all @returns {Lesson} */
function lessonOf({ id, title, claim, place, strategies, steps, deadlocks, try: tries, timing, loads, starts_lab, why_not }, all) {
  const its = strategies.flatMap((/** @type {string} */ slug) => all.find((s) => s.slug === slug) ?? []);
  // Flaw first, then cure, in the lesson's order; in a comparison the lesson's own strategy comes first. The lessons on limits have a page.
  const own = timing ? its.filter((/** @type {Strategy} */ s) => sectionsOf(s).includes(id)) : [];
  return { id, title, claim, place, strategies: [...new Set([...own, ...its])], steps: steps ?? [], deadlocks: deadlocks ?? [], tries: id.startsWith('003.limits') ? [...tries, '/limits.html'] : tries, timing, loads, whyNot: why_not, byHand: null, startsLab: starts_lab };
}

/** @param {Strategy} strategy @param {Lesson[]} beside @returns {Lesson} */
function lessonOfStrategy(strategy, beside) {
  const [section] = sectionsOf(strategy);
  const taken = !/^\d/.test(section) || beside.some((l) => l.id === section);
  const [zh, en] = [nameInTitle(strategy.title.zh), nameInTitle(strategy.title.en)];
  return {
    id: taken ? strategy.slug : section, title: { zh, en }, claim: null, place: strategy.chapter, strategies: [strategy],
    steps: [], deadlocks: [], tries: [], timing: false, loads: true, whyNot: null, byHand: [], startsLab: false,
  };
}

/** Does the course have a lesson for it in its own section? @param {Chapter[]} chapters @param {Strategy} strategy */
function hasLesson(chapters, strategy) {
  const lessons = chapters.flatMap((c) => c.lessons);
  const [section] = sectionsOf(strategy);
  const there = !/^\d/.test(section) || lessons.some((l) => isWithin(l.id, section));
  return there && lessons.some((l) => l.strategies.includes(strategy));
}

/** A strategy may stand in two sections: `2.9, 2.10.4`. @param {Strategy} strategy @returns {string[]} */
const sectionsOf = (strategy) => strategy.chapter.split(/,\s*/);

/** @param {string} id @param {string} section */
const isWithin = (id, section) => id === section || id.startsWith(`${section}.`);

/** Is it a section of the main text? @param {string} name */
const isSection = (name) => /^\d(\.|$)/.test(name);

/** The number that a lesson is sorted by; what is outside the main text comes last. @param {Lesson} lesson */
const numberOf = ({ id, place }) => [id, place].find(isSection) ?? '9';

/** Compares part by part, as numbers. @param {string} a @param {string} b */
const compareNumbers = (a, b) => a.localeCompare(b, 'en', { numeric: true });

/** The name in a title, which reads "name: what happens". @param {string} title @returns {string} */
export function nameInTitle(title) {
  const name = /^(.+?)(?:：|: )/.exec(title)?.[1] ?? title;
  return name[0].toUpperCase() + name.slice(1);
}

/**
 * The lesson of a number or of a strategy's slug. A number of a whole section means its first lesson; a subsection without a lesson means
 * the section above it.
 * @param {Chapter[]} chapters @param {string} name @returns {{lesson: Lesson, strategy: Strategy | null} | null}
 */
export function findLesson(chapters, name) {
  const lessons = chapters.flatMap((c) => c.lessons);
  const wanted = name.replace(/^\[(.+)\]$/, '$1');
  const withStrategy = lessons.filter((l) => l.strategies.some((s) => s.slug === wanted));
  const own = withStrategy.find((l) => l.strategies.some((s) => s.slug === wanted && sectionsOf(s).includes(l.id)))
    ?? withStrategy.find((l) => l.strategies[0].slug === wanted) ?? withStrategy[0];
  if (own) return { lesson: own, strategy: own.strategies.find((s) => s.slug === wanted) ?? null };
  const chapter = chapters.find((c) => c.id === wanted);
  const lesson = lessons.find((l) => l.id === wanted)
    ?? lessons.find((l) => l.strategies.some((s) => sectionsOf(s).includes(wanted)))
    ?? lessons.find((l) => isWithin(l.id, wanted)) ?? chapter?.lessons[0];
  if (lesson) return { lesson, strategy: null };
  const parentId = /^(\d+\.\d[\d.]*)\.\d+$/.exec(wanted)?.[1];
  const section = parentId && lessons.find((l) => l.id === parentId);
  return section ? { lesson: section, strategy: null } : null;
}
