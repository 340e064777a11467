// A tool that asks other plugins before it acts, and tells them afterwards.
/** @param {import("../../../crates/outrigger-js/host/outrigger").OutriggerInput} input */
export const Deploy = async ({ outrigger }) => ({
  tool: {
    release: {
      description: "Releases the project to a target.",
      args: { target: { type: "string", description: "Where to." } },
      async execute({ target }) {
        const { steps } = await outrigger.call("deploy/release.before", { target }, { steps: ["build", "upload"] });
        await outrigger.emit("deploy/release.done", { target, steps: steps.length });
        return `released to ${target}: ${steps.join(", ")}`;
      },
    },
  },
});
