/** The visits of all instances, as server-sent events: all that is kept, and then each as it happens; begun anew when the connection was lost. */

const RECONNECT_MS = 1000;

/** @param {{begin: () => void, told: (event: import('./visits.js').ClassEvent) => void, lost: () => void}} handlers */
export function followClass(handlers) {
  const source = new EventSource('classroom/events');
  source.onopen = () => handlers.begin();
  source.onmessage = ({ data }) => handlers.told(JSON.parse(data));
  source.onerror = () => {
    handlers.lost();
    // A browser gives up when the answer is an error.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => followClass(handlers), RECONNECT_MS);
  };
}
