// The page of one request.

import { CardList } from "./card_list.js";
import { keepTime } from "./clock.js";
import { listenToKeys } from "./queue_keys.js";
import { toast } from "./toasts.js";

const root = document.getElementById("queue");
const csrf = document.querySelector("input[name=csrfmiddlewaretoken]").value;
const list = new CardList(root, { csrf, back: "", isListed: false }, {
  decided(message) {
    toast(message);
  },
  changed() {
    document.getElementById("none").hidden = list.shown.length > 0;
  },
});
keepTime(root);
listenToKeys(list);
