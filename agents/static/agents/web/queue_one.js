// The page of one request: this script only updates its times.

import { keepTime } from "./clock.js";

keepTime(document.getElementById("queue"));
