/** The first view, and the page. */

import './opening.test.mjs';
import './page.test.mjs';
