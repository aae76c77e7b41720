// Package bundle says how esbuild makes scripts and style sheets of the dashboard's modules, for the build and for tests of modules.
package bundle

import "github.com/evanw/esbuild/pkg/api"

// Options are those of every build, which runs in the folder web. The libraries of others are in vendor, by the names under which
// modules import them.
func Options() api.BuildOptions {
	return api.BuildOptions{
		Bundle: true, Target: api.ES2022, Charset: api.CharsetUTF8,
		Alias: map[string]string{
			"uplot":       "./vendor/uplot/uPlot.esm.js",
			"d3-dispatch": "./vendor/d3-dispatch/d3-dispatch.mjs",
			"d3-force":    "./vendor/d3-force/d3-force.mjs",
			"d3-quadtree": "./vendor/d3-quadtree/d3-quadtree.mjs",
			"d3-timer":    "./vendor/d3-timer/d3-timer.mjs",
		},
	}
}
