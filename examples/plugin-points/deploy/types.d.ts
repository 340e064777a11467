// Made by `outrigger plugin points --types deploy`.

import "outrigger";

declare module "outrigger" {
  interface OwnPoints {
    /** A release is about to be made; its steps may be changed, and a throw stops it. */
    "deploy/release.before": { input: { target: string; [key: string]: unknown }; output: { steps: string[] } };
  }
  interface OwnEvents {
    /** A release was made. */
    "deploy/release.done": { steps: number; target: string; [key: string]: unknown };
  }
}
