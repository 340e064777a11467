// In each frame, in a world of its own: a person's clicks and keys.
for (const kind of globalThis.outriggerWatched ? [] : ["pointerdown", "keydown"]) {
  addEventListener(kind, (event) => { if (event.isTrusted) globalThis.outriggerPerson?.(kind) }, { capture: true, passive: true })
}
globalThis.outriggerWatched = true
