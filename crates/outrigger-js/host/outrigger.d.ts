// What a plugin gets from Outrigger beyond OpenCode's plugin input: `async ({ client, outrigger }) => ({ ... })`.
// Under OpenCode `outrigger` is undefined.

/** Why a call was refused, as `error.code`. */
export type RefusalCode =
  /** No such point or event is declared in the plugin's own outrigger.plugin.toml. */
  | "custom_point.undeclared"
  /** It is declared by another plugin, or by the program. */
  | "custom_point.owner"
  /** The point is under way already, and this call comes out of it. The message names the way. */
  | "custom_point.cycle"
  /** More than 8 points call each other. */
  | "custom_point.depth"
  /** More than 1 MiB for a call, or 64 KiB for an event. */
  | "custom_point.size"
  /** More than 32 calls of this plugin under way, or 50 events within a second. */
  | "custom_point.rate"
  /** Input, output or properties do not fit the declared schema. */
  | "custom_point.schema"
  /** A handler refused; the message is its own. */
  | "point.refused";

/**
 * Points and events that plugins declare, by name. A package that declares some adds them:
 *
 *     declare module "outrigger" {
 *       interface OwnPoints { "deploy/release.before": { input: { target: string }; output: { steps: string[] } } }
 *       interface OwnEvents { "deploy/release.done": { target: string; steps: number } }
 *     }
 */
export interface OwnPoints {}
export interface OwnEvents {}

type PointIn<N> = N extends keyof OwnPoints ? (OwnPoints[N] extends { input: infer I } ? I : unknown) : unknown;
type PointOut<N> = N extends keyof OwnPoints
  ? OwnPoints[N] extends { output: infer O }
    ? O
    : Record<string, unknown>
  : Record<string, unknown>;
type EventOf<N> = N extends keyof OwnEvents ? OwnEvents[N] : Record<string, unknown>;

export interface Outrigger {
  /**
   * Runs the handlers of a point that this plugin declares under `[[points]]`, in their order, and resolves with the
   * output as the last one left it. Rejects with `code: "point.refused"` when one refused (`refusal` is `{ code, details }`
   * of its HookBlock), with another {@link RefusalCode} when the call may not be made.
   */
  call<N extends string>(point: N, input: PointIn<N>, output: PointOut<N>): Promise<PointOut<N>>;
  /** Publishes an event that this plugin declares under `[[events]]`. It is stored and sent to every client and plugin. */
  emit<N extends string>(event: N, properties: EventOf<N>): Promise<void>;
}

/** What Outrigger adds to the plugin input. */
export interface OutriggerInput {
  outrigger: Outrigger;
}

/**
 * What a handler throws to refuse (docs/plugins.md, "Refusing"): any error with this name. Where no refusal is allowed it has
 * no effect.
 */
export interface HookBlock extends Error {
  name: "HookBlock";
  /** Letters, digits and `._-`, at most 64; codes that begin with `hook.` are Outrigger's. */
  code: string;
  /** Anything that is JSON, at most 16 KiB. */
  details?: unknown;
}

/**
 * What a handler may return instead of throwing or changing `output`: nothing, or this. The keys of `patch` take the place of those
 * of `output`, and those that are null go. What the point or the plugin's manifest does not allow has no effect and is recorded.
 */
export type HookAnswer =
  | void
  | { action: "continue" }
  | { action: "patch"; patch: Record<string, unknown> }
  | { action: "block"; code: string; message: string; details?: unknown };

/** Handlers at points of other plugins, as keys of the object that a plugin function answers with. */
export type OwnHooks = {
  [N in keyof OwnPoints]?: (input: PointIn<N>, output: PointOut<N>) => Promise<HookAnswer>;
};

/** A request to a model, in no provider's format. */
export interface ProviderRequest {
  model: {
    id: string;
    providerID: string;
    /** `api.id` is the name to send. */
    api: { id: string; url: string; npm: string };
    limit: { context: number; input?: number; output: number };
    [key: string]: unknown;
  };
  /** `provider.ID.options` of the configuration, without keys. */
  options: Record<string, unknown>;
  messages: (
    | { role: "system"; content: string }
    | { role: "user" | "assistant"; content: ProviderContent[] }
    | { role: "tool"; call_id: string; tool: string; content: string; is_error: boolean }
  )[];
  tools: { name: string; description: string; parameters: Record<string, unknown> }[];
  tool_choice: "auto" | "required";
  params: {
    temperature?: number;
    topP?: number;
    topK?: number;
    maxOutputTokens?: number;
    options: Record<string, unknown>;
  };
  /** Headers that hooks (`chat.headers`) have set. */
  headers: [string, string][];
}

export type ProviderContent =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string; metadata?: unknown }
  | { type: "file"; mime: string; url: string; filename?: string }
  | { type: "tool_call"; call_id: string; tool: string; input: unknown; metadata?: unknown };

/** What a provider's `stream` yields. Texts of one kind that follow each other are one block. */
export type ProviderPiece =
  | { type: "text"; text: string }
  | { type: "reasoning"; text: string }
  | { type: "tool-start"; id?: string; name: string }
  /** `input` as a text is what the model wrote; it may be no JSON. */
  | { type: "tool-call"; id?: string; name: string; input: unknown }
  | {
      type: "finish";
      reason?: "stop" | "tool-calls" | "length" | "content-filter" | "error" | "other";
      usage: { input: number; output: number; reasoning?: number; cacheRead?: number; cacheWrite?: number };
    };

/**
 * The `provider` object of the hooks that a plugin answers with. With `stream` it speaks for a provider of its own; the
 * manifest names it under `provides.providers`. `models` is OpenCode's.
 */
export interface OwnProvider {
  id: string;
  name?: string;
  /** Variables that may hold its key. Without any it wants none. */
  env?: string[];
  models(provider: unknown, context: { auth?: unknown }): Promise<Record<string, unknown>>;
  /**
   * Asks the service. What it throws may say what it stands for: `status` (HTTP), `retryable`, `retryAfterMs`, `code`.
   * Before the first piece the request is then made again where that makes sense.
   */
  stream(request: ProviderRequest, context: { signal: AbortSignal; key?: string }): AsyncIterable<ProviderPiece>;
}
