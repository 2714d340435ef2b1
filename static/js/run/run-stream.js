/**
 * The live numbers of a run, as server-sent events.
 *
 * The browser reconnects an EventSource by itself when the network breaks, but gives up when the answer is an error
 * (a proxy whose upstream is gone, say). We try again then too: the run goes on without us.
 */

const RECONNECT_MS = 1000;

/**
 * @param {string} id
 * @param {{progress: (data: any) => void, over: (data: any) => void, found: () => void, lost: () => void}} handlers
 *   `over`: the run has ended, well or badly; `lost` and `found`: the connection.
 * @returns {() => void} ends the stream
 */
export function followRun(id, handlers) {
  /** @type {EventSource} */
  let source;
  /** @type {number | undefined} */
  let timer;
  const close = () => {
    clearTimeout(timer);
    source.close();
  };
  const open = () => {
    source = new EventSource(`runs/${id}/events`);
    source.onopen = () => handlers.found();
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, RECONNECT_MS);
      handlers.lost();
    };
    source.addEventListener('progress', (event) => handlers.progress(JSON.parse(event.data)));
    for (const last of ['done', 'failed']) {
      source.addEventListener(last, (event) => {
        close();
        handlers.over(JSON.parse(event.data));
      });
    }
  };
  open();
  return close;
}
