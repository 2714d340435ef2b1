/** What is broken by hand, and the class. */

import './breaking.test.mjs';
import './sent-broken.test.mjs';
import './class.test.mjs';
import './cache.test.mjs';
