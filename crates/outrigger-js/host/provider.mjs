// Answers of providers that a plugin speaks for with a protocol of its own: what its `stream` yields, as server-sent events.

import { enter } from "./blame.mjs";
import { find } from "./run.mjs";
import { errorText, plain } from "./value.mjs";

const encoder = new TextEncoder();
const line = (piece) => encoder.encode(`data: ${JSON.stringify(plain(piece))}\n\n`);
const whole = (value) => (Number.isInteger(value) ? value : undefined);

// What a failure stands for: the HTTP status that it names, or 503 when it says that the same request may work later.
function statusOf(error) {
  const status = whole(error?.status);
  if (status >= 400 && status < 600) return status;
  return error?.retryable === true ? 503 : undefined;
}

function failure(error, status) {
  const headers = {};
  const wait = Number(error?.retryAfterMs);
  if (wait >= 0) headers["retry-after-ms"] = String(wait);
  const code = error?.code === undefined ? undefined : String(error.code);
  return Response.json({ error: { message: errorText(error), code } }, { status, headers });
}

// The first piece is waited for: until it is there, a failure is one of the request, and it may be made again.
export async function answer({ handler, provider, key, ask }, call, signal) {
  const own = find(handler).provider;
  if (own?.id !== provider || typeof own.stream !== "function") {
    throw new Error(`plugin ${handler.plugin} no longer speaks for the provider ${provider}`);
  }
  enter(handler.plugin, "provider.stream", call);
  let pieces;
  let first;
  try {
    const made = own.stream(ask, { signal, key });
    pieces = made[Symbol.asyncIterator]();
    first = await pieces.next();
  } catch (error) {
    const status = statusOf(error);
    if (status === undefined) throw error;
    return failure(error, status);
  }
  const body = new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = first ?? (await pieces.next());
          first = undefined;
          if (done) controller.close();
          else controller.enqueue(line(value));
        } catch (error) {
          const code = error?.code === undefined ? undefined : String(error.code);
          controller.enqueue(line({ type: "error", message: errorText(error), status: statusOf(error), code }));
          controller.close();
        }
      },
      async cancel() {
        await pieces.return?.();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
