import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vitest/config'

const at = (path: string) => fileURLToPath(new URL(path, import.meta.url))

// `vite build --mode faults` is the build whose worker stops where it may die: for tests/browser alone.
export default defineConfig(({ mode }) => ({
  base: './',
  plugins: [react()],
  // Components of the page come from web/, and have one React with those of the panel.
  resolve: { alias: { '@web': at('../web/src') }, dedupe: ['react', 'react-dom'] },
  build: {
    outDir: mode === 'faults' ? 'dist-faults' : 'dist',
    emptyOutDir: true,
    target: 'chrome125',
    assetsDir: '',
    assetsInlineLimit: 0,
    modulePreload: false,
    rolldownOptions: {
      input: { worker: at('src/worker.ts'), panel: at('panel.html'), offscreen: at('offscreen.html'), writer: at('src/workspace/writer.ts') },
      output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js', assetFileNames: '[name][extname]' },
    },
  },
  test: { include: ['tests/unit/**/*.test.ts'] },
}))
