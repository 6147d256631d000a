// SPDX-License-Identifier: Apache-2.0

// fetch.go URL: prints the page, with the proxy and the trust anchors from the environment.
package main

import (
	"io"
	"net/http"
	"os"
)

func main() {
	response, err := http.Get(os.Args[1])
	if err != nil {
		panic(err)
	}
	io.Copy(os.Stdout, response.Body)
}
