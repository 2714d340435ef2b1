/** What is broken by hand: links, servers, instances; and what a browser may keep. */

import './breaking.test.mjs';
import './sent-broken.test.mjs';
import './cache.test.mjs';
