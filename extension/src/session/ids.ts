const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
let last = 0

/** An identifier in OpenCode's form: twelve digits of time, so that they ascend, and fourteen random ones. */
export function newId(prefix: 'ses' | 'trn'): string {
  last = Math.max(last + 1, Date.now() * 0x1000)
  const stamp = (BigInt(last) & 0xffff_ffff_ffffn).toString(16).padStart(12, '0')
  const random = Array.from(crypto.getRandomValues(new Uint8Array(14)), (byte) => DIGITS[byte % DIGITS.length])
  return `${prefix}_${stamp}${random.join('')}`
}
