// A request on a page of its own: its times run, and it is answered as without this script.

import { keepTime } from "./clock.js";

keepTime(document.getElementById("queue"));
