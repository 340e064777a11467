// Called on an element: brings it into view and finds a point at which it, and nothing else, is hit.
async function (action) {
  const element = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement
  if (!element || !element.isConnected) return { gone: true }
  if (action !== "hover" && action !== "scroll" && (element.matches(":disabled") || element.getAttribute("aria-disabled") === "true")) return { why: "it is disabled" }
  const option = element.localName === "option" ? element.closest("select") : null
  if (option) return { why: "it is an option of a list: use `select` on the list" }
  const frame = () => new Promise((done) => { const timer = setTimeout(done, 60); requestAnimationFrame(() => { clearTimeout(timer); done() }) })
  element.scrollIntoViewIfNeeded ? element.scrollIntoViewIfNeeded(true) : element.scrollIntoView({ block: "center" })
  const box = () => {
    const width = document.documentElement.clientWidth || innerWidth, height = document.documentElement.clientHeight || innerHeight
    const clipped = (rect) => ({ left: Math.max(0, rect.left), top: Math.max(0, rect.top), right: Math.min(width, rect.right), bottom: Math.min(height, rect.bottom) })
    let rects = [...element.getClientRects()]
    if (getComputedStyle(element).display === "contents" || rects.every((rect) => rect.width * rect.height === 0)) {
      const range = document.createRange(); range.selectNodeContents(element); rects = [...rects, ...range.getClientRects()]
    }
    return rects.map(clipped).find((rect) => rect.right - rect.left >= 1 && rect.bottom - rect.top >= 1)
  }
  // What slides in begins slowly: it is still where nothing has moved for three frames.
  let before = box(), rect = before
  for (let tries = 0, still = 0; tries < 14 && still < 3; tries++) {
    await frame()
    rect = box()
    const isStill = before && rect && Math.abs(before.left - rect.left) < 0.5 && Math.abs(before.top - rect.top) < 0.5 && Math.abs(before.right - rect.right) < 0.5
    still = isStill ? still + 1 : 0
    before = rect
  }
  if (!element.isConnected) return { gone: true }
  if (!rect) return { why: "it cannot be seen: it has no size, or is outside of what can be scrolled to" }
  if (getComputedStyle(element).visibility === "hidden") return { why: "it is hidden" }
  const inside = (node, outer) => { for (let at = node; at; at = at.parentNode ?? at.host) if (at === outer) return true; return false }
  const labels = [...(element.labels ?? [])], labelled = element.closest("label")?.control
  const own = (hit) => inside(hit, element) || labels.some((label) => inside(hit, label)) || (labelled && inside(hit, labelled))
    || (getComputedStyle(element).pointerEvents === "none" && inside(element, hit))
  const points = [[0.5, 0.5], [0.5, 0.2], [0.2, 0.5], [0.8, 0.5], [0.5, 0.8], [0.1, 0.1]]
  let cover = null
  for (const [a, b] of points) {
    const x = rect.left + (rect.right - rect.left) * a, y = rect.top + (rect.bottom - rect.top) * b
    let hit = element.getRootNode().elementFromPoint?.(x, y), fits = hit && own(hit)
    for (let root = element.getRootNode(); fits && root.host; root = root.host.getRootNode()) {
      const outer = root.host.getRootNode().elementFromPoint(x, y)
      if (!outer || !inside(outer, root.host)) { fits = false; hit = outer }
    }
    if (fits) return { x, y }
    cover ??= hit
  }
  const words = cover ? `<${cover.localName}${cover.id ? ` id="${cover.id}"` : ""}> ${(cover.innerText ?? "").trim().slice(0, 60)}` : "nothing of it"
  return { why: `something else is in front of it (${words.trim()}), which would get the click` }
}
