/** The verdict of several rounds on a claim that compares rates. Pure. */

/** @typedef {{strategy: string, target: 'one' | 'three', threads: number}} Side */
/** The first is `least` to `most` times as fast as the second. @typedef {{first: Side, second: Side, least: number, most?: number}} Rates */
/** `rounds`: the ratio of each. @typedef {{ratio: number, rounds: number[], says: 'holds' | 'not' | 'apart'}} RateVerdict */

/** @param {Side} side */
export const keyOf = ({ strategy, target, threads }) => `${strategy} ${target} ${threads}`;
/** @param {number[]} all */
export const medianOf = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];

/** Each side once, in order. @param {Rates[]} rates @returns {Side[]} */
export const sidesOf = (rates) => [...new Map(rates.flatMap(({ first, second }) => [first, second]).map((side) => [keyOf(side), side])).values()];

/** The verdict on a pair: rounds that disagree prove nothing. @param {Rates} pair @param {Map<string, number[]>} seen rates by side @returns {RateVerdict | null} null if there is no round */
export function judge({ first, second, least, most = Infinity }, seen) {
  const [a, b] = [first, second].map((side) => seen.get(keyOf(side)) ?? []);
  const rounds = a.slice(0, b.length).map((rate, i) => rate / b[i]);
  if (!rounds.length) return null;
  const holding = rounds.filter((ratio) => least <= ratio && ratio <= most).length;
  const says = holding === rounds.length ? 'holds' : holding ? 'apart' : 'not';
  return { ratio: medianOf(a) / medianOf(b), rounds, says };
}
