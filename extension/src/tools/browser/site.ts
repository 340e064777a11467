import type { Host } from '../../session/host'
import { type Ask, ToolError } from '../tool'

const LOCAL = /^(localhost|.*\.localhost|127\..*|10\..*|192\.168\..*|169\.254\..*|172\.(1[6-9]|2\d|3[01])\..*|0\.0\.0\.0|\[.*\])$/

/** The question about an address. */
export function permissionOf(url: string): Ask {
  const parsed = URL.canParse(url) ? new URL(url) : null
  return { permission: 'browser', pattern: url, always: parsed ? `${parsed.origin}/*` : url, title: `Use ${parsed?.host ?? url}` }
}

/** An address that may be shown, as the kernel judges; a person or a rule has allowed it by name, or it would not have come here. */
export function siteOf({ kernel }: Host, url: string): string {
  if (!URL.canParse(url)) throw ToolError.denied(`${url} is not an address: addresses begin with http:// or https://`)
  const { protocol, hostname, port, href } = new URL(url)
  const scheme = protocol.slice(0, -1)
  const number = port ? Number(port) : scheme === 'https' ? 443 : 80
  const local = [`${scheme}://${hostname}:${number}`]
  kernel.call('browser.site', { scheme, host: hostname, port: number, is_local: LOCAL.test(hostname), local })
  return href
}
