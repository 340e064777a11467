/** What the native program may send to a tab that is lent to it: what `crates/outrigger-browser/src/chromium` sends, and nothing else. Cookies,
 * storage, downloads, permissions and other targets are not among it. */
export const COMMANDS: ReadonlySet<string> = new Set([
  'Accessibility.getFullAXTree', 'DOM.enable', 'DOM.getDocument', 'DOM.getFrameOwner', 'DOM.resolveNode', 'DOMSnapshot.captureSnapshot',
  'Emulation.setFocusEmulationEnabled', 'Fetch.continueRequest', 'Fetch.enable', 'Fetch.failRequest', 'Input.dispatchDragEvent', 'Input.dispatchKeyEvent',
  'Input.dispatchMouseEvent', 'Input.insertText', 'Input.setInterceptDrags', 'Inspector.enable', 'Log.enable', 'Network.enable', 'Network.getResponseBody',
  'Page.addScriptToEvaluateOnNewDocument', 'Page.bringToFront', 'Page.captureScreenshot', 'Page.createIsolatedWorld', 'Page.enable', 'Page.getFrameTree',
  'Page.getLayoutMetrics', 'Page.getNavigationHistory', 'Page.handleJavaScriptDialog', 'Page.navigate', 'Page.navigateToHistoryEntry', 'Page.reload',
  'Page.setInterceptFileChooserDialog', 'Page.startScreencast', 'Runtime.addBinding', 'Runtime.callFunctionOn', 'Runtime.enable', 'Runtime.evaluate',
  'Runtime.runIfWaitingForDebugger', 'Target.setAutoAttach',
])

/** What leads away from a page that may not be read, and what a tab needs before it shows anything. */
export const ANYWHERE: ReadonlySet<string> = new Set([
  'DOM.enable', 'Emulation.setFocusEmulationEnabled', 'Fetch.continueRequest', 'Fetch.enable', 'Fetch.failRequest', 'Inspector.enable', 'Log.enable',
  'Network.enable', 'Page.addScriptToEvaluateOnNewDocument', 'Page.enable', 'Page.getFrameTree', 'Page.getNavigationHistory', 'Page.handleJavaScriptDialog',
  'Page.navigate', 'Page.navigateToHistoryEntry', 'Page.setInterceptFileChooserDialog', 'Page.startScreencast', 'Runtime.addBinding', 'Runtime.enable',
  'Runtime.runIfWaitingForDebugger', 'Target.setAutoAttach',
])

/** The events that it gets: those that it looks at. The headers of requests, and cookies with them, are in others. */
export const EVENTS: ReadonlySet<string> = new Set([
  'Fetch.requestPaused', 'Input.dragIntercepted', 'Inspector.targetReloadedAfterCrash', 'Log.entryAdded', 'Network.loadingFailed', 'Network.requestWillBeSent',
  'Network.responseReceived', 'Page.frameAttached', 'Page.frameDetached', 'Page.frameNavigated', 'Page.frameStartedLoading', 'Page.frameStoppedLoading',
  'Page.javascriptDialogClosed', 'Page.javascriptDialogOpening', 'Page.navigatedWithinDocument', 'Runtime.bindingCalled', 'Runtime.consoleAPICalled',
  'Runtime.exceptionThrown', 'Runtime.executionContextCreated', 'Runtime.executionContextDestroyed', 'Runtime.executionContextsCleared',
  'Target.attachedToTarget', 'Target.detachedFromTarget',
])

/** An event without what is not looked at: headers of requests and answers, and bodies. */
export function trimmed(method: string, params: Record<string, unknown>): Record<string, unknown> {
  const bare = (of: unknown, ...names: string[]) => Object.fromEntries(names.map((name) => [name, (of as Record<string, unknown> | undefined)?.[name]]))
  const { requestId, type, frameId } = params
  switch (method) {
    case 'Fetch.requestPaused':
      return { requestId, frameId, request: bare(params['request'], 'url', 'method') }
    case 'Network.requestWillBeSent': {
      const redirected = params['redirectResponse'] ? { redirectResponse: bare(params['redirectResponse'], 'status') } : {}
      return { requestId, type, frameId, request: bare(params['request'], 'url', 'method'), ...redirected }
    }
    case 'Network.responseReceived':
      return { requestId, type, frameId, response: bare(params['response'], 'status') }
    default:
      return params
  }
}
