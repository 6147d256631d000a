// SPDX-License-Identifier: Apache-2.0

// fetch.go URL [FILE]: prints the page, or the response to a POST of the file.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	var response *http.Response
	var err error
	if len(os.Args) > 2 {
		file, failed := os.Open(os.Args[2])
		if failed != nil {
			panic(failed)
		}
		response, err = http.Post(os.Args[1], "application/octet-stream", file)
	} else {
		response, err = http.Get(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	io.Copy(os.Stdout, response.Body)
	if response.StatusCode != 200 {
		fmt.Fprintln(os.Stderr, response.Status)
		os.Exit(1)
	}
}
