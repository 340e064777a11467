import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/** The script stands in an element of HTML: nothing in its texts may end that element or begin a comment there. */
const inline: Plugin = {
  name: 'inline',
  generateBundle(_, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type === 'chunk') file.code = file.code.replace(/<(?=\/?script|!--)/gi, '\\x3c')
    }
  },
}

// The script and the style of `outrigger export --format html`: one of each, which `outrigger` writes into the file with the conversation.
export default defineConfig({
  plugins: [react(), inline],
  publicDir: false,
  define: { 'process.env.NODE_ENV': '"production"' },
  build: {
    target: 'es2022',
    // `vite build` was here before.
    emptyOutDir: false,
    modulePreload: { polyfill: false },
    lib: { entry: 'src/export/main.tsx', formats: ['iife'], name: 'outriggerExport', fileName: () => 'export.js', cssFileName: 'export' },
  },
})
