// SPDX-License-Identifier: Apache-2.0

// verify.go ROOT HOST:PORT...: performs a TLS handshake with 127.0.0.1:PORT for each HOST and trusts only ROOT. Prints
// one line per HOST: the host, and "accepted" or the error.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
)

func main() {
	anchors := x509.NewCertPool()
	pem, err := os.ReadFile(os.Args[1])
	if err != nil || !anchors.AppendCertsFromPEM(pem) {
		panic("no trust anchor in " + os.Args[1])
	}
	for _, place := range os.Args[2:] {
		host, port, _ := strings.Cut(place, ":")
		connection, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{ServerName: host, RootCAs: anchors})
		if err != nil {
			fmt.Println(host, err)
			continue
		}
		connection.Close()
		fmt.Println(host, "accepted")
	}
}
