<?xml version="1.0" encoding="utf-8"?>
<!-- Step 3: HTML, in the encoding and with the document type that xsl:output says. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="html" encoding="iso-8859-1" media-type="text/html" indent="no"
              doctype-public="-//W3C//DTD HTML 4.01//EN" doctype-system="http://www.w3.org/TR/html4/strict.dtd"/>
  <xsl:param name="query"/>
  <xsl:strip-space elements="*"/>
  <xsl:template match="/page">
    <html lang="en">
      <head><title><xsl:value-of select="title"/></title></head>
      <body>
        <xsl:apply-templates/>
        <xsl:if test="$query"><p>Asked for: <xsl:value-of select="$query"/></p></xsl:if>
      </body>
    </html>
  </xsl:template>
  <xsl:template match="menu"><p><xsl:for-each select="item"><a href="{@page}"><xsl:value-of select="."/></a> </xsl:for-each></p></xsl:template>
  <xsl:template match="title"><h1><xsl:value-of select="."/></h1></xsl:template>
  <xsl:template match="para"><p><xsl:value-of select="."/></p></xsl:template>
  <xsl:template match="table">
    <table>
      <xsl:apply-templates select="row"/>
      <tr><th>together</th><td colspan="3"/><td><xsl:value-of select="@sum"/></td></tr>
    </table>
  </xsl:template>
  <xsl:template match="row">
    <tr><th><xsl:value-of select="@name"/></th><xsl:apply-templates select="number"/><td><xsl:value-of select="@sum"/></td></tr>
  </xsl:template>
  <xsl:template match="number"><td><xsl:value-of select="."/></td></xsl:template>
</xsl:stylesheet>
