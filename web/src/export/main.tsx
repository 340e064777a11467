import { createRoot } from 'react-dom/client'
import { beginTheme } from '../lib/theme'
import '../styles.css'
import './export.css'
import { ExportPage } from './ExportPage'
import { read } from './document'

beginTheme()
const root = document.getElementById('root')
if (root) createRoot(root).render(<ExportPage document={read(document.getElementById('data')?.textContent ?? '')} />)
