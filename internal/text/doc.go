// Package text formats texts for tables and messages. It formats no quantities: package unit does.
package text
