/** What the races send, how light they come, and the pages of figures and words. */

import './sent.test.mjs';
import './light.test.mjs';
import './course-figures.test.mjs';
import './glossary.test.mjs';
import './reasons.test.mjs';
import './errata.test.mjs';
