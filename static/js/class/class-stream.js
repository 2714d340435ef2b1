/** The visits of all instances, as server-sent events: all that is kept, and then each as it happens; begun anew when the connection was lost. */

const AGAIN_MS = 1000;

/** @param {{begin: () => void, told: (event: import('./visits.js').Told) => void, lost: () => void}} tell */
export function follow(tell) {
  const source = new EventSource('classroom/events');
  source.onopen = () => tell.begin();
  source.onmessage = ({ data }) => tell.told(JSON.parse(data));
  source.onerror = () => {
    tell.lost();
    // A browser gives up when the answer is an error.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => follow(tell), AGAIN_MS);
  };
}
