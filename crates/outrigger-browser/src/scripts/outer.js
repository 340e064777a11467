// Called on the element of a frame: a point of the frame, as a point of the page around it.
function (x, y) {
  const rect = this.getBoundingClientRect()
  const at = { x: rect.left + this.clientLeft + x, y: rect.top + this.clientTop + y }
  const hit = this.getRootNode().elementFromPoint(at.x, at.y)
  return hit && hit !== this && !this.contains(hit) ? { why: `something is in front of its frame (<${hit.localName}>)` } : at
}
