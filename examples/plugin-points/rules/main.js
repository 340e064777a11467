// Subscribes to the point and the event of another plugin. No manifest is needed for that.
import { appendFile } from "node:fs/promises";
import { join } from "node:path";

export const Rules = async ({ directory }) => ({
  "deploy/release.before": async ({ target }, output) => {
    if (target === "production") throw new Error("nothing is released to production on a Friday");
    output.steps.unshift("test");
  },
  event: async ({ event }) => {
    if (event.type !== "deploy/release.done") return;
    await appendFile(join(directory, "releases.log"), `${event.properties.target} ${event.properties.steps}\n`);
  },
});
