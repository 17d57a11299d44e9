<?xml version="1.0" encoding="utf-8"?>
<!-- Step 1: every row with numbers gets their sum, every table the sum of all. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:import href="common.xsl"/>
  <xsl:template match="table">
    <table sum="{sum(row/number)}">
      <xsl:apply-templates select="@*|node()"/>
    </table>
  </xsl:template>
  <xsl:template match="row[number]">
    <row sum="{sum(number)}">
      <xsl:apply-templates select="@*|node()"/>
    </row>
  </xsl:template>
</xsl:stylesheet>
