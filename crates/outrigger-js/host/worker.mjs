// What a Worker of a plugin begins with: the same way to the proxy as in the process.

import { route } from "./net.mjs";

// A Worker may have been given an environment of its own.
if (process.env.HTTPS_PROXY) route(process.env.HTTPS_PROXY);
