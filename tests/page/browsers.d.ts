// The page is for the browsers of 2022 (Chrome 109 is the last for Windows 7) and its tests for Node 18: ES2022, and this of ES2023.
interface Array<T> {
  findLast(like: (one: T, at: number, all: T[]) => unknown): T | undefined;
  findLastIndex(like: (one: T, at: number, all: T[]) => unknown): number;
}
